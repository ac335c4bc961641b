import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../../servers.mjs'
import { modelIn } from '../bench-folder.mjs'
import { untilUp } from './parts.mjs'

const ASKED = { prompt: 'a b c', n_predict: 400, ignore_eos: true, stream: true, n_probs: 400, temperature: 0 }
const READ_EVERY_MS = 40
const PAUSES_MAX = 100

/** Reads an answer in pieces, and waits after each: the answer of some MB fills the buffers of the kernel, and the server waits to send. */
async function readSlowly(port) {
  const body = JSON.stringify(ASKED)
  const socket = connect({ port, host: '127.0.0.1', highWaterMark: 4096 })
  const head = `POST /completion HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n`
  socket.write(head + body)
  let pauses = 0
  try {
    for await (const _ of socket) if (pauses++ < PAUSES_MAX) await sleep(READ_EVERY_MS)
  } finally {
    socket.destroy()
  }
}

export const slowReader = {
  id: 'slow-reader',
  title: 'a client that reads its answer slowly',
  builds: ['pool', 'openmp'],
  isUndisturbed: true,
  isNamed: ({ rule }) => rule === 'slow-client',
  async create({ folder, build }) {
    const port = await freePort()
    const model = await modelIn(folder, 'tinyDense')
    const meanwhile = async (child) => {
      await untilUp(`http://127.0.0.1:${port}`, child)
      try {
        await readSlowly(port)
      } finally {
        child.kill('SIGINT')
      }
    }
    return { command: build.server(['-m', model, '--host', '127.0.0.1', '--port', `${port}`, '-t', '1']), meanwhile }
  },
}

/** A backend of another process: a server of ggml-rpc on the same machine. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { modelIn } from '../bench-folder.mjs'

const MODEL = { layers: 4, width: 512, feedForward: 2048, heads: 8, kvHeads: 2, vocabulary: 1400, context: 512 }

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  return port
}

const isOpen = (port) =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(true)
    }).on('error', () => resolve(false))
  })

/** The server has one layer more of the model from run to run, up to all. */
export const remoteBackend = {
  id: 'remote-backend',
  title: 'layers that a server of ggml-rpc computes',
  builds: ['rpc', 'rpc-cuda'],
  rules: ['remote-wait'],
  async create({ folder, build, number }) {
    const port = await freePort()
    const address = `127.0.0.1:${port}`
    const [file, ...args] = build.serve(address)
    const server = spawn(file, args, { stdio: ['pipe', 'ignore', 'ignore'] })
    while (!(await isOpen(port))) {
      if (server.exitCode !== null) throw new Error(`the server of ggml-rpc ended with code ${server.exitCode}`)
      await sleep(20)
    }
    const layers = `${Math.min(3 + (number % 3), 5)}`
    const command = build.decode({
      ...{ model: await modelIn(folder, MODEL), threads: 1, prompt: 8 + number, tokens: 40 },
      args: ['--rpc', address, '--gpu-layers', layers],
    })
    return { command, env: build.env, undo: () => server.kill() }
  },
}

/** A server of llama.cpp that runs for one request. */
import { spawn } from 'node:child_process'
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** A port of this machine that nothing listens on. */
export const freePort = () =>
  new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })

/** Starts a server that listens on `port`, sends it one request for a completion, and stops it; returns the answer. */
export async function askServer(command, args, port, request, options) {
  const server = spawn(command, args, { stdio: 'ignore', ...options })
  let isRunning = true
  const ended = new Promise((resolve) => server.on('close', resolve)).then(() => {
    isRunning = false
  })
  try {
    const url = `http://127.0.0.1:${port}`
    const isUp = () =>
      fetch(`${url}/health`).then(
        ({ ok }) => ok,
        () => false,
      )
    while (isRunning && !(await isUp())) await sleep(100)
    const answer = await fetch(`${url}/completion`, { method: 'POST', body: JSON.stringify(request) })
    const read = await answer.json()
    server.kill('SIGINT')
    await ended
    return read
  } finally {
    server.kill('SIGKILL')
  }
}

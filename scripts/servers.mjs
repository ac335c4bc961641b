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

/** Waits until a server has loaded its model; false: it has ended before. */
export async function untilUp(url, isOver) {
  const isUp = () =>
    fetch(`${url}/health`).then(
      ({ ok }) => ok,
      () => false,
    )
  while (!isOver()) {
    if (await isUp()) return true
    await sleep(50)
  }
  return false
}

/** Starts a server that listens on `port`, sends it one request for a completion, and stops it; returns the answer. */
export async function askServer(command, args, port, request, options) {
  const server = spawn(command, args, { stdio: 'ignore', ...options })
  let isRunning = true
  const ended = new Promise((resolve) => server.on('close', resolve)).then(() => {
    isRunning = false
  })
  try {
    const url = `http://127.0.0.1:${port}`
    await untilUp(url, () => !isRunning)
    const answer = await fetch(`${url}/completion`, { method: 'POST', body: JSON.stringify(request) })
    const read = await answer.json()
    server.kill('SIGINT')
    await ended
    return read
  } finally {
    server.kill('SIGKILL')
  }
}

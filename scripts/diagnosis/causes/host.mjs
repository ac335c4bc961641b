/** What the program, or one that controls it, does around calls. */
import { execFileSync, spawn } from 'node:child_process'
import { join } from 'node:path'
import { modelIn } from '../bench-folder.mjs'
import { FIRST } from '../quiet.mjs'
import { controlGroup } from './parts.mjs'

/** As a program that asks a tool or a database after each token. */
export const pausingProgram = {
  id: 'pausing-program',
  title: 'a program that waits for something else between its calls',
  builds: ['pool', 'own'],
  isUndisturbed: true,
  rules: ['between-calls'],
  async create({ folder, build, number }) {
    const args = ['--pause-us', `${20_000 + 5000 * number}`]
    return { command: build.decode({ model: await modelIn(folder, 'tinyMoe'), threads: 1, tokens: 40, args }) }
  },
}

/** It must get a CPU while a program that nothing disturbs has all of them. */
const BEFORE = FIRST.length > 0 ? ['chrt', '-f', '2'] : []

/** Stops the processes of a group (freezer) for so many milliseconds at a time; returns what ends it. */
function stopping(group, ms) {
  const state = join(group, 'freezer.state')
  const loop = 'while :; do echo FROZEN > "$0"; sleep "$1"; echo THAWED > "$0"; sleep 0.06; done'
  const [file, ...args] = [...BEFORE, 'sh', '-c', loop, state, `${ms / 1000}`]
  const child = spawn(file, args, { stdio: 'ignore' })
  return () => {
    child.kill('SIGKILL')
    execFileSync('sh', ['-c', 'sleep 0.1; echo THAWED > "$0"', state])
  }
}

/** As cpulimit, or a container that is paused again and again. */
export const stoppedProgram = {
  id: 'stopped-program',
  title: 'a program that is stopped and continued (as cpulimit does)',
  builds: ['pool', 'openmp'],
  isUndisturbed: true,
  rules: ['blocked-workers'],
  async create({ folder, build, number }) {
    const { enter, folder: group, undo: remove } = controlGroup('freezer', {})
    const end = stopping(group, 60 + 10 * number)
    const undo = () => {
      end()
      remove()
    }
    return {
      command: [...enter, ...build.decode({ model: await modelIn(folder, 'big'), threads: 2, tokens: 24 })],
      undo,
    }
  },
}

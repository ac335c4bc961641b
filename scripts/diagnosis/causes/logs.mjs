/** What happens to the log: the recorder loses a part of it, or the file is damaged afterwards. */
import { closeSync, openSync, statSync, truncateSync, writeSync } from 'node:fs'
import { modelIn } from '../bench-folder.mjs'

const rules = ['losses']
const BLOCK = 4096

export const cutLog = {
  id: 'cut-log',
  title: 'a log that was cut while it was copied',
  builds: ['pool', 'openmp'],
  by: ['convert', 'why'],
  isUndisturbed: true,
  isCostUnknown: true,
  rules,
  async create({ folder, build, number }) {
    const command = build.decode({ model: await modelIn(folder, 'big'), threads: 2, tokens: 24 })
    const spoil = (log) => truncateSync(log, Math.floor(statSync(log).size * (0.5 + 0.08 * number)))
    return { command, spoil }
  },
}

/** A disk that returned other bytes in the middle of the log. */
export const damagedLog = {
  id: 'damaged-log',
  title: 'a log with a block of other bytes in it',
  builds: ['pool', 'openmp'],
  by: ['convert', 'why'],
  isUndisturbed: true,
  isCostUnknown: true,
  rules,
  async create({ folder, build, number }) {
    const command = build.decode({ model: await modelIn(folder, 'tinyMoe'), threads: 2, tokens: 60 })
    const spoil = (log) => {
      const block = Buffer.alloc(BLOCK, 0xa5)
      const file = openSync(log, 'r+')
      writeSync(file, block, 0, BLOCK, Math.floor((statSync(log).size * (0.4 + 0.05 * number)) / BLOCK) * BLOCK)
      closeSync(file)
    }
    return { command, spoil }
  },
}

export const fullLog = {
  id: 'full-log',
  title: 'a log that reached its size limit',
  builds: ['pool', 'openmp'],
  isUndisturbed: true,
  rules,
  async create({ folder, build, number }) {
    const command = build.decode({ model: await modelIn(folder, 'tinyMoe'), threads: 2, tokens: 200 })
    return { command, options: { record: ['--max-size', `${400 + 100 * number}K`] } }
  },
}

/** As the kernel does when memory runs out. */
export const killedProgram = {
  id: 'killed-program',
  title: 'a program that is killed while it decodes',
  builds: ['pool'],
  isUndisturbed: true,
  rules,
  async create({ folder, build, number }) {
    const command = build.decode({ model: await modelIn(folder, 'big'), threads: 2, tokens: 400 })
    return { command: ['prlimit', `--cpu=${8 + number}`, ...command] }
  },
}

/** What happens to the log: the recorder loses a part of it, or the file is damaged afterwards. */
import { statSync, truncateSync } from 'node:fs'
import { modelIn } from '../bench-folder.mjs'

const isNamed = ({ rule }) => rule === 'losses'

export const cutLog = {
  id: 'cut-log',
  title: 'a log that was cut while it was copied',
  builds: ['pool', 'openmp'],
  by: ['convert', 'why'],
  isUndisturbed: true,
  isNamed,
  async create({ folder, build, number }) {
    const command = build.decode({ model: await modelIn(folder, 'big'), threads: 2, tokens: 24 })
    const spoil = (log) => truncateSync(log, Math.floor(statSync(log).size * (0.5 + 0.08 * number)))
    return { command, spoil }
  },
}

/** As the kernel does when memory runs out. */
export const killedProgram = {
  id: 'killed-program',
  title: 'a program that is killed while it decodes',
  builds: ['pool'],
  isNamed,
  async create({ folder, build, number }) {
    const command = build.decode({ model: await modelIn(folder, 'big'), threads: 2, tokens: 400 })
    return { command: ['prlimit', `--cpu=${8 + number}`, ...command] }
  },
}

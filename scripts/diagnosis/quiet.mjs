/** Runs that nothing disturbs. A finding in them is right only if its figure is true of the run, which a witness measures. */
import { spawnSync } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { modelIn } from './bench-folder.mjs'
import { look } from './look.mjs'
import { checked, truthOf } from './witness.mjs'

const MODELS = [
  { preset: 'tinyDense', tokens: 40 },
  { preset: 'tinyMoe', tokens: 40 },
  { preset: 'big', tokens: 24 },
]
const PROMPT = 16

/** Before a program: nothing takes its CPUs, whatever else runs on the machine. Empty without the right to do so. */
export const FIRST = spawnSync('chrt', ['-f', '1', 'true']).status === 0 ? ['chrt', '-f', '1'] : []

/** The nth of the quiet runs: all models, then numbers of threads, then builds. */
function settingOf(number, builds) {
  const of = (list, every) => list[Math.floor(number / every) % list.length]
  const threads = of([1, 2], MODELS.length)
  return { ...of(MODELS, 1), threads: Math.min(threads, availableParallelism()), build: of(builds, 2 * MODELS.length) }
}

/** Records the nth quiet run; its findings by command, each with what is true. */
export async function quietRun(folder, builds, number) {
  const { preset, tokens, threads, build } = settingOf(number, builds)
  const command = build.decode({ model: await modelIn(folder, preset), threads, prompt: PROMPT, tokens })
  const name = `quiet-${number + 1}`
  const { log, findings } = await look(folder, name, { command: [...FIRST, ...command] })
  const truth = await truthOf(folder, FIRST, command, { threads, prompt: PROMPT })
  const found = Object.fromEntries(
    Object.entries(findings).map(([by, list]) => [
      by,
      list.map((finding) => ({ ...brief(finding), ...checked(finding, truth) })),
    ]),
  )
  const isTrue = Object.values(found).every((list) => list.every(({ isTrue }) => isTrue))
  return { name, model: preset, threads, build: build.name, log, truth, findings: found, isTrue }
}

export const brief = ({ rule, sentence, confidence }) => ({ rule, sentence, confidence })

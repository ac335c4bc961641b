import type { Analysis } from '../../lib/cli.ts'
import { duration, threeDigits } from '../units.ts'
import { known, number, type Section, tableOf, text } from './section.ts'

type Test = Analysis['benchmarks'][number]

/** Parameters that the section `run` shows, or that follow from others. */
const SHOWN_ELSEWHERE: ReadonlySet<string> = new Set(['build_commit', 'build_number', 'cpu_info'])
/** Short names of parameters, as llama-bench's own table has them. */
const TITLES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    model_filename: 'model',
    model_type: 'type',
    n_gpu_layers: 'ngl',
    n_threads: 'threads',
    backends: 'backend',
    flash_attn: 'fa',
  }),
)

/** Tests that programs measured themselves; parameters that differ are columns, the others facts. */
export function benchmarksSection({ benchmarks = [] }: Partial<Analysis>): Section | undefined {
  if (benchmarks.length === 0) return undefined
  const keys = [...new Set(benchmarks.flatMap(({ parameters }) => Object.keys(parameters)))]
  const valuesOf = (key: string) => new Set(benchmarks.map((benchmark) => parameterOf(benchmark, key)))
  const differing = keys.filter((key) => valuesOf(key).size > 1)
  const common = keys.filter((key) => !differing.includes(key) && !SHOWN_ELSEWHERE.has(key))
  const textOf = (key: string) => `${parameterOf(benchmarks[0]!, key)}`
  const others = common.filter((key) => !TITLES.has(key)).map((key) => `${key} ${textOf(key)}`)
  const titleOf = (key: string) => TITLES.get(key) ?? key
  const table = tableOf(benchmarks, {}, [
    text('test', ({ test }) => test),
    ...differing.map((key) => {
      const column = typeof parameterOf(benchmarks[0]!, key) === 'string' ? text : number
      return column<Test>(titleOf(key), (benchmark) => `${parameterOf(benchmark, key) ?? ''}`)
    }),
    number('repetitions', ({ repetitions }) => known(repetitions, String)),
    number('tok/s', ({ tokens_per_s }) => speed(tokens_per_s)),
    number('±', deviation),
    number('time', ({ time_ns }) => duration(time_ns)),
  ])
  return {
    title: 'benchmarks',
    facts: [
      ...common.filter((key) => TITLES.has(key)).map((key): [string, string] => [titleOf(key), textOf(key)]),
      ...(others.length > 0 ? [['options', others.join(', ')] as [string, string]] : []),
    ],
    tables: [table],
  }
}

/** Names of parameters come from files: `constructor` is one, too. */
const parameterOf = ({ parameters }: Test, key: string) =>
  Object.hasOwn(parameters, key) ? parameters[key] : undefined
const speed = (value: number) => (value < 1000 ? threeDigits(value) : `${Math.round(value)}`)
const deviation = ({ deviation_tokens_per_s: value, tokens_per_s }: Test) =>
  value === null || tokens_per_s === 0 ? '' : `${threeDigits((100 * value) / tokens_per_s)} %`

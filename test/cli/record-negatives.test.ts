import { beforeAll, describe, expect, test } from '@jest/globals'
import { attached, chosen, OPTIONS } from '../../bin/record/options.ts'
import { run, useFolder } from './helpers.ts'

/** `--no-…` of each boolean option of `record`, in each of its modes: it has its effect, or nothing is left to turn off. */

useFolder()

type Key = keyof typeof OPTIONS
type Parsed = Parameters<typeof chosen>[0]

const BOOLEANS = Object.entries(OPTIONS).flatMap(([name, option]) => (option.type === 'boolean' ? [name as Key] : []))
const camel = (name: string) => name.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())
const DEFAULTS = Object.fromEntries(
  Object.entries(OPTIONS).map(([name, option]) => [camel(name), 'default' in option ? option.default : undefined]),
)
const args = (changes: object) => ({ ...DEFAULTS, ...changes }) as unknown as Parsed

describe('a program that is started, also by --sweep', () => {
  const changed = (key: Key) => {
    const [usual, negated] = [chosen(args({})), chosen(args({ [camel(key)]: false }))] as Record<string, unknown>[]
    return Object.keys({ ...usual, ...negated }).filter((name) => (negated![name] ?? false) !== (usual![name] ?? false))
  }
  const ON: readonly string[] = ['children', 'gpu', 'states', 'functions']
  test.each(BOOLEANS.filter((key) => key !== 'browser'))('--no-%s', (key) => {
    // `ask` is on where it is not given.
    expect(changed(key)).toEqual(ON.includes(key) ? [key] : [])
    if (key === 'ask') expect(chosen(args({ ask: false }))).toMatchObject({ ask: false })
  })
})

describe('--attach', () => {
  const sched = (changes: object) => attached(args(changes), 1).sched
  test.each(BOOLEANS)('--no-%s', (key) => {
    expect(sched({ [camel(key)]: false })).toBe(key !== 'sched' && key !== 'states')
  })
  test('--sched with --no-states', () => expect(sched({ sched: true, states: false })).toBe(true))
})

const onLinux = process.platform === 'linux' ? describe : describe.skip

onLinux('--print-env (needs Linux)', () => {
  const lines = (...options: readonly string[]) => run(['record', '--print-env', '-q', '-o', '/a.ggtrace', ...options])
  let usual: string[] = []
  beforeAll(() => {
    usual = lines().stdout.split('\n')
  })
  const VARIABLES: Readonly<Record<string, string>> = {
    gpu: 'GGML2PERFETTO_GPU=0',
    states: 'GGML2PERFETTO_STATES=0',
    functions: 'GGML2PERFETTO_FUNCTIONS=0',
  }
  test.each(BOOLEANS.filter((key) => key !== 'print-env'))('--no-%s', (key) => {
    const { code, stdout, stderr } = lines(`--no-${key}`)
    if (key === 'browser') return expect([code, stderr]).toEqual([1, expect.stringContaining('expected --open, too')])
    const added = stdout.split('\n').filter((line) => !usual.includes(line))
    const missing = usual.filter((line) => !stdout.split('\n').includes(line))
    expect([code, stderr]).toEqual([0, ''])
    expect(added).toEqual(VARIABLES[key] === undefined ? [] : [VARIABLES[key]])
    expect(missing).toEqual(key === 'children' ? ['GGML2PERFETTO_CHILDREN=1'] : [])
  })
})

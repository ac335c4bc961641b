import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from '@jest/globals'
import { adviceOf, RULES, threadScaling } from '../../../lib/analysis.ts'
import { type Analysis, analyze } from '../../../lib/index.ts'
import { IN_ROOT, whyNoDebian } from '../../llama/debian.ts'
import { LIB } from '../../llama/testbed.ts'
import { madeRun } from './made-run.ts'

/** Advice names options that the program that ran accepts, and none that it was started with. */

const RULES_FOLDER = fileURLToPath(new URL('../../../lib/analyze/findings', import.meta.url))
/** A word that is an option. */
const OPTION = /(?<![\w./-])--?[a-z][a-z-]*[a-z]|(?<![\w./-])-[a-z]\b/g
const optionsIn = (text: string) => text.match(OPTION) ?? []

/** Options of other programs in advice: ours, and those of tools of the system. */
const OF_OTHERS = [
  ...[
    '--sched',
    '--faults',
    '--peaks',
    '--experts',
    '--level',
    '--tokens',
    '--request',
    '--series',
    '--mem',
    '--contents',
    '--full',
    '--no-states',
    '--no-functions',
    '--sync',
    '--power',
  ],
  '--tensor-type', // of llama-quantize
  ...['--interleave', '--cpunodebind', '--membind'], // of numactl
  ...['-g', '-s', '-pl', '--power-cap', '--cpus', '-e'],
]

const analysed = async (attributes: Record<string, string>): Promise<Analysis> =>
  await analyze(madeRun({ calls: [], attributes }))

/** All advice, as given to a program with these facts. */
async function allAdvice(attributes: Record<string, string>): Promise<string[]> {
  const analysis = await analysed(attributes)
  return [...RULES, threadScaling].map(({ advice }) => adviceOf(advice, analysis))
}

/** Those of the texts in the files of rules whose options do not depend on the version: also of a finding's own advice. */
const inFiles = readdirSync(RULES_FOLDER)
  .filter((name) => name !== 'program.ts')
  .flatMap((name) => {
    const texts = readFileSync(join(RULES_FOLDER, name), 'utf8').match(/'(?:[^'\\\n]|\\.)*'|`[^`]*`|"[^"\n]*"/g) ?? []
    // A list of options to look for in a command line is no advice.
    return texts.filter((text) => !/^'--?[\w-]+'$/.test(text)).flatMap(optionsIn)
  })

interface Tool {
  readonly version: string
  readonly help: string
  run(...args: readonly string[]): string
}

function toolOf(command: readonly string[]): Tool {
  const [file, ...before] = command as [string, ...string[]]
  const run = (...args: readonly string[]) => {
    const { stdout, stderr } = spawnSync(file, [...before, ...args], { encoding: 'utf8' })
    return `${stdout}${stderr}`
  }
  const version = /version: (\S+)/.exec(run('--version'))?.[1] ?? ''
  return { version, help: run('--help'), run }
}

/** Is an option listed, and not as one that was removed? */
const isListed = ({ help }: Tool, option: string) => {
  const lines = help.split('\n')
  const at = lines.findIndex((line) => new RegExp(`^(?=\\S).*(?:^|[\\s,])${option}(?:[\\s,=]|$)`).test(line))
  return (
    at >= 0 &&
    !lines
      .slice(at, at + 2)
      .join(' ')
      .includes('has been removed')
  )
}

const debian = whyNoDebian() === undefined ? ['0.7.0', [...IN_ROOT, 'llama-server']] : undefined
const bundled = join(LIB, '../server/llama-server')
const vendor = existsSync(bundled) ? ['0.5.0', [bundled]] : undefined
const tools = [debian, vendor].filter((tool) => tool !== undefined) as [string, string[]][]

describe.each(tools)('llama-server %s', (version, command) => {
  const tool = toolOf(command)

  test('accepts every option that advice names', async () => {
    expect(tool.version.split('-')[0]).toBe(version)
    const texts = await allAdvice({ 'llama.version': tool.version, command: 'llama-server -m x.gguf' })
    const options = [...new Set([...texts.flatMap(optionsIn), ...inFiles])].filter((of) => !OF_OTHERS.includes(of))
    expect(options.length).toBeGreaterThan(15)
    expect(options.filter((option) => !isListed(tool, option))).toEqual([])
  })

  test('rejects those of earlier versions', () => {
    for (const option of ['--no-mmap', '--mlock', '--draft-max']) {
      expect(isListed(tool, option)).toBe(false)
      expect(tool.run(option, ...(option === '--draft-max' ? ['3'] : []))).toMatch(/invalid argument|has been removed/)
    }
    expect(tool.run('--load-mode', 'none', '--load-mode', 'mlock', '--version')).toContain(`version: ${version}`)
  })
})

test('of an earlier version, the options have its names; of an unknown one, both', async () => {
  const earlier = (await allAdvice({ 'ggml.version': '0.9.4' })).join('\n')
  expect(earlier).toContain('--no-mmap')
  expect(earlier).not.toMatch(/--load-mode|--spec-draft/)
  const unknown = (await allAdvice({})).join('\n')
  expect(unknown).toContain('--load-mode none [before version 0.5.0 --no-mmap]')
})

test.each([
  ['--load-mode mlock', /--load-mode mlock/],
  ['-lm none', /--load-mode none/],
  ['--no-mmap', /--load-mode none/],
  ['--cpu-moe', /--cpu-moe/],
  ['-ctk q8_0', /-ctk/],
  ['--cpu-mask 3', /--cpu-mask/],
])('a run with %s is not advised to use it', async (option, advised) => {
  const facts = { 'llama.version': '0.7.0' }
  expect((await allAdvice({ ...facts, command: 'llama-server -m x.gguf' })).join('\n')).toMatch(advised)
  expect((await allAdvice({ ...facts, command: `llama-server -m x.gguf ${option}` })).join('\n')).not.toMatch(advised)
})

test('flash attention is no advice where the graph computes it', async () => {
  const rule = RULES.find(({ id }) => id === 'context-growth')!
  const steps = (op: string) => [{ name: 'kqv-0', op, ns: [1000] }]
  const adviceWith = async (op: string) =>
    adviceOf(rule.advice, await analyze(madeRun({ calls: [{ phase: 'decode', steps: steps(op) }] })))
  expect(await adviceWith('SOFT_MAX')).toContain('flash attention')
  expect(await adviceWith('FLASH_ATTN_EXT')).not.toContain('flash attention')
})

test('fewer threads than CPUs are no advice where there are fewer', async () => {
  const rule = RULES.find(({ id }) => id === 'preempted')!
  const adviceWith = async (cpus: string) => {
    const calls = [{ phase: 'decode' as const, steps: [{ name: 'a-0', op: 'MUL_MAT', ns: [1000, 1000] }] }]
    return adviceOf(rule.advice, await analyze(madeRun({ calls, attributes: { cpus } })))
  }
  expect(await adviceWith('2')).toContain('fewer threads than CPUs')
  expect(await adviceWith('3')).not.toContain('fewer threads')
})

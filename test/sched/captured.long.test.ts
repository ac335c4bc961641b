import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { inputOf, openTrace } from '../../lib/node.ts'
import { BPFTRACE, canBpftrace } from '../machine.ts'
import { expectedIn } from '../read/sched-lines.ts'
import { canTrace, type Instance, newInstance } from './instance.ts'
import { actOf, ours, plainSystrace, systraceOf, type Tables, theirs } from './systrace.ts'
import '../live.ts'

/**
 * Captures that are made here and now, by every tool that is there, of scripts/sched-workload.c: CPU slices and thread states are
 * those that trace_processor computes without us, and their number is what grep counts.
 */

const root = fileURLToPath(new URL('../..', import.meta.url))
const INSTANCE = `captured-${process.pid}`
const EVENTS = ['switch', 'waking', 'wakeup', 'process_fork', 'process_exec', 'process_exit'].map(
  (e) => `sched/sched_${e}`,
)
const has = (command: string, ...args: string[]) => spawnSync(command, args, { stdio: 'ignore' }).status === 0
const canCompile = process.platform === 'linux' && has('cc', '--version')
const hasTracing = canCompile && canTrace(INSTANCE)
const hasTraceCmd = hasTracing && has('sh', '-c', 'command -v trace-cmd')
const hasPerf = canCompile && has('perf', 'record', '-q', '-a', '-e', 'sched:sched_switch', '-o', '/dev/null', 'true')
const hasBpftrace = canCompile && canBpftrace()

let folder: string
const at = (name: string) => join(folder, name)
const run = (command: string, ...args: string[]) =>
  execFileSync(command, args, { cwd: folder, maxBuffer: 1 << 28, stdio: ['ignore', 'pipe', 'ignore'] })
const keep = (name: string, text: Uint8Array) => writeFileSync(at(name), text)

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-captured-'))
  if (canCompile) run('cc', '-O1', '-pthread', '-o', 'workload', join(root, 'scripts/sched-workload.c'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const grep = (pattern: string, name: string) =>
  Number(spawnSync('grep', ['-acE', pattern, at(name)], { encoding: 'utf8' }).stdout)

/** A text's tables are what is expected, and grep counts as many switches and wakings. Returns ours. */
async function expectSame(name: string, expected: Tables, ns: number, counted = name): Promise<void> {
  const { tables, missing, wakings, problems } = await ours(inputOf(at(name)), ns)
  expect([name, problems]).toEqual([name, []])
  expect([name, tables.slices]).toEqual([name, expected.slices])
  expect([name, tables.states]).toEqual([name, expected.states])
  expect([name, wakings]).toEqual([name, grep('sched_waking: |g2p waking ', counted)])
  expect([name, tables.slices.length - missing]).toEqual([name, grep('sched_switch: |g2p switch ', counted)])
}

/** The tables of a text that trace_processor does not read, by the tool's own lines. */
async function tablesOfText(name: string, format: string, ns: number): Promise<Tables> {
  const text = readFileSync(at(name), 'utf8')
  return theirs(systraceOf(expectedIn(text, format).flatMap((event) => actOf(event) ?? [])), ns)
}

const traced = hasTracing ? describe : describe.skip
traced('ftrace (needs root and tracefs)', () => {
  let instance: Instance
  beforeEach(() => {
    instance = newInstance(INSTANCE, EVENTS)
  })
  afterEach(() => instance.remove())

  test('its text, with every option, is what trace_processor reads; trace.dat and reports of it are the same', async () => {
    instance.set('options/record-tgid', 1)
    instance.set('tracing_on', 1)
    run(at('workload'), 'quiet')
    instance.set('tracing_on', 0)
    const text = (name: string) => keep(name, instance.read('trace'))
    text('tgid.txt')
    instance.set('options/irq-info', 0)
    text('no-irq.txt')
    instance.set('options/fields', 1)
    text('fields.txt')
    instance.set('options/fields', 0)
    instance.set('options/irq-info', 1)
    instance.set('options/record-tgid', 0)
    text('plain.txt')

    const raw = readFileSync(at('plain.txt'), 'utf8')
    const plain = plainSystrace(raw)
    // What is not in the text is told by trace_processor as often as by us.
    const bare = await openTrace(Buffer.from(plainSystrace(raw, false).text))
    const mismatches = bare.problems().find(({ name }) => name === 'mismatched_sched_switch_tids')?.value ?? 0
    bare.close()
    expect(plain.missing).toBe(mismatches)
    const expected = await theirs(plain, 1000)
    expect(expected.slices.length).toBeGreaterThan(50)
    for (const name of ['plain.txt', 'tgid.txt', 'no-irq.txt', 'fields.txt']) await expectSame(name, expected, 1000)
    if (!hasTraceCmd) return

    run('trace-cmd', 'extract', '-B', INSTANCE, '-o', 'extracted.dat')
    for (const [name, ...options] of [
      ['v6.dat', '--file-version', '6'],
      ['v7.dat', '--file-version', '7', '--compression', 'none'],
      ['v7-zstd.dat', '--file-version', '7', '--compression', 'zstd'],
    ] as const) {
      run('trace-cmd', 'convert', '-i', 'extracted.dat', '-o', name, ...options)
      await expectSame(name, expected, 1000, 'plain.txt')
    }
    for (const [name, ...options] of [
      ['report.txt'],
      ['report-t.txt', '-t'],
      ['report-l.txt', '-l'],
      ['report-R.txt', '-R'],
    ]) {
      const report = run('trace-cmd', 'report', ...options, '-i', 'extracted.dat').toString('latin1')
      // Lines of a buffer that is not the top one begin with its name.
      keep(name!, Buffer.from(report.replaceAll(`${INSTANCE}: `, '').replace(/^\nBuffer: .*\n\n/m, ''), 'latin1'))
      // Its short form of sched_switch does not tell R+ from R: that text is what counts.
      await expectSame(name!, await tablesOfText(name!, 'ftrace', 1000), 1000)
    }
  })

  test('trace_pipe', async () => {
    instance.set('tracing_on', 1)
    run(at('workload'), 'quiet')
    instance.set('tracing_on', 0)
    const pipe = ['0.5', 'cat', `/sys/kernel/tracing/instances/${INSTANCE}/trace_pipe`]
    keep('pipe.txt', spawnSync('timeout', pipe, { maxBuffer: 1 << 28 }).stdout)
    await expectSame('pipe.txt', await theirs(plainSystrace(readFileSync(at('pipe.txt'), 'utf8')), 1000), 1000)
  })
})

const PERF = [
  'record',
  '-q',
  '-a',
  '-k',
  'CLOCK_MONOTONIC',
  '-m',
  '1024',
  '-e',
  'sched:sched_switch,sched:sched_waking',
]
const FIELDS = 'comm,pid,tid,cpu,time,event,trace'
const perfTest = hasPerf ? test : test.skip
perfTest.each([
  ['a file', []],
  ['compressed', ['-z']],
] as const)('perf.data: %s (needs root and perf)', async (_, options) => {
  run('perf', ...PERF, ...options, '-o', 'perf.data', at('workload'), 'quiet')
  for (const [name, ...args] of [['ns.txt', '--ns', '-F', FIELDS], ['us.txt'], ['misc.txt', '-F', `+misc,+period`]]) {
    const ns = name === 'ns.txt' ? 1 : 1000
    keep(name!, run('perf', 'script', ...args, '-i', 'perf.data'))
    const expected = await tablesOfText(name!, 'perf-script', ns)
    expect(expected.slices.length).toBeGreaterThan(50)
    await expectSame(name!, expected, ns)
    if (ns === 1) await expectSame('perf.data', expected, 1, name)
  }
})

perfTest('perf.data through a pipe (needs root and perf)', async () => {
  keep('pipe.data', run('perf', ...PERF, '-o', '-', at('workload'), 'quiet'))
  keep('pipe.txt', run('perf', 'script', '--ns', '-F', FIELDS, '-i', 'pipe.data'))
  await expectSame('pipe.data', await tablesOfText('pipe.txt', 'perf-script', 1), 1, 'pipe.txt')
})

const bpftraceTest = hasBpftrace ? test : test.skip
bpftraceTest.each([
  ['text', []],
  ['JSON', ['-f', 'json']],
] as const)('native/ebpf/sched.bt: %s (needs root and bpftrace)', async (_, options) => {
  const [bpftrace, ...first] = BPFTRACE
  const command = [
    ...first,
    ...options,
    '-o',
    'sched.g2p',
    '-c',
    `${at('workload')} quiet`,
    join(root, 'native/ebpf/sched.bt'),
  ]
  execFileSync(bpftrace, command, { cwd: folder, env: { ...process.env, BPFTRACE_PERF_RB_PAGES: '2048' } })
  await expectSame('sched.g2p', await tablesOfText('sched.g2p', 'bpftrace', 1), 1)
})

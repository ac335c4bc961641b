import { execFileSync } from 'node:child_process'
import { describe, expect, test } from '@jest/globals'
import type { OperatorEvent } from '../../lib/core.ts'
import { convert } from '../../lib/index.ts'
import { COUNTERS } from '../../lib/node/record/counters.ts'
import { inputOf, openTrace, summarizeFile } from '../../lib/node.ts'
import { CLI, NODE } from '../cli/helpers.ts'
import { hasLlama, model, type Run, runHosts } from '../llama/testbed.ts'
import { inLong, inParts, someOf } from '../long.ts'
import { startHog, stealing } from '../machine.ts'
import { AS_USER, denied, PARANOID, perfTest, rootTest, settable, useRecorderOfUser, withSetting } from './as-user.ts'
import { inFolder, newLog, type Recording, readLog, recordHosts } from './recording.ts'
import '../live.ts'

/** What is counted operator by operator, held against what the kernel tells otherwise. */

interface Usage {
  readonly minor: number
  readonly major: number
  readonly switches: number
}

const usageOf = ({ lines }: Run) =>
  lines.filter(({ event }) => (event as string) === 'times') as unknown as readonly Usage[]

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)
const llama = hasLlama() ? describe : describe.skip
/** They need no permission, and no hardware. */
const EVERYWHERE = ['task-clock', 'page-faults', 'minor-faults', 'major-faults', 'context-switches', 'bytes-read']
const NO_HARDWARE = /this machine \(a virtual machine\?\) has no hardware counters/
const isWeight = (name: string) => name.endsWith('.weight')

/** Facts of the recording, as they are at its end. */
const factsOf = ({ of }: Recording) =>
  Object.assign({}, of('input')[0]!.attributes, ...of('facts').map(({ attributes }) => attributes)) as Record<
    string,
    string
  >

/** What each counter counted in an operator. */
function counter({ of, text }: Recording, name: string): (operator: OperatorEvent) => number {
  const { index } = of('counted').find((counted) => text(counted.name) === name)!
  return ({ counts }) => counts?.[index] ?? 0
}

/** How long a thread ran in an operator, and how often it stopped, by what the kernel told of its states. */
function scheduling({ of }: Recording): (operator: OperatorEvent) => { ranNs: number; stops: number } {
  const threads = new Map<number, { startNs: number; endNs: number }[]>()
  const running = new Map<number, number>()
  for (const { tid, state, atNs } of of('state')) {
    const startNs = running.get(tid)
    if (startNs !== undefined && state !== 'running') {
      const spans = threads.get(tid) ?? []
      threads.set(tid, spans)
      spans.push({ startNs, endNs: atNs })
      running.delete(tid)
    } else if (state === 'running') running.set(tid, startNs ?? atNs)
  }
  for (const [tid, startNs] of running) threads.get(tid)?.push({ startNs, endNs: Infinity })
  const next = new Map<number, number>()
  return ({ tid, startNs, endNs }) => {
    const spans = threads.get(tid) ?? []
    let first = next.get(tid) ?? 0
    while (first < spans.length && spans[first]!.endNs <= startNs) first++
    next.set(tid, first)
    let [ranNs, stops] = [0, 0]
    for (let i = first; i < spans.length && spans[i]!.startNs < endNs; i++) {
      ranNs += Math.min(endNs, spans[i]!.endNs) - Math.max(startNs, spans[i]!.startNs)
      if (spans[i]!.endNs < endNs) stops++
    }
    return { ranNs, stops }
  }
}

llama('counters, operator by operator (needs linux-x64 and cc)', () => {
  const record = useRecorderOfUser()
  const counting = (names: readonly string[]) => ({ GGML2PERFETTO_COUNTERS: names.join(',') })

  test('page faults of operators are the process’ own, and happen where weights are read', async () => {
    const { path, tensors } = await model('tinyDense')
    const steps = ['decode', 0, 5, 'evict', 'times', 'decode', 0, 1, 'times', 'decode', 0, 1]
    const log = newLog()
    const env = {
      ...counting(['minor-faults', 'major-faults', 'bytes-read', 'page-faults']),
      GGML2PERFETTO_STATES: '0',
    }
    const { result, plain } = await recordHosts(['load', 0, path, 'open', 0, 2, ...steps], { env, log })
    const recording = await readLog(log)
    const { of, issues, tensor, text } = recording
    const had = of('operator').filter(({ call, counts }) => call === 5 && counts)
    const total = (name: string) => sum(had.map(counter(recording, name)))
    const [traced, untraced] = [usageOf(result), usageOf(plain)].map(([first, second]) => ({
      minor: second!.minor - first!.minor,
      major: second!.major - first!.major,
    }))
    const [minor, major] = [total('minor-faults'), total('major-faults')]
    // Every 64 KiB of what is read at least, as the kernel maps that much at once; of the embeddings that is a few rows.
    const read = sum(tensors.flatMap((weight) => (weight.name === 'token_embd.weight' ? [] : [weight.size])))
    expect(minor + major).toBeGreaterThan((0.9 * read) / 65536)
    expect(total('page-faults')).toBe(minor + major)
    // None is counted that did not happen; outside of operators there are the program's few, and ours, which are apart.
    const outside = traced!.minor + traced!.major - minor - major
    const ours = Math.max(0, traced!.minor + traced!.major - untraced!.minor - untraced!.major)
    expect([outside >= 0, outside <= ours + 16]).toEqual([true, true])
    expect(major).toBeLessThanOrEqual(traced!.major)
    // Where the file is on a disk, its pages were forgotten.
    if (major > 0) expect(total('bytes-read')).toBeGreaterThan(0.9 * read)
    const reading = had.filter(({ tensor: id }) =>
      tensor(id).sources.some((source) => isWeight(text(tensor(source).name))),
    )
    expect(reading.length).toBeGreaterThan(had.length / 2)
    expect(issues).toEqual([])
    await expectFaultSlices(log, recording)
  })

  /** The group Faults and I/O has each operator that read from the disk, by its weights. */
  async function expectFaultSlices(log: string, recording: Recording): Promise<void> {
    const { of, tensor, text } = recording
    const [major, read] = [counter(recording, 'major-faults'), counter(recording, 'bytes-read')]
    const waited = of('operator').filter((operator) => major(operator) > 0 || read(operator) > 0)
    const wanted = waited.map((operator) => {
      const weights = tensor(operator.tensor)
        .sources.map((id) => text(tensor(id).name))
        .filter(isWeight)
      return [operator.worker, weights.join(' ') || 'no weights', major(operator) || null].join()
    })
    const trace = await openTrace(convert(inputOf(log)))
    expect(trace.problems()).toEqual([])
    const { rows } = trace.query(`select substr(t.name, 8, 1), s.name, extract_arg(arg_set_id, 'debug.major_faults')
      from slice s join track t on t.id = s.track_id where category = 'fault'`)
    trace.close()
    expect(rows.map((row) => row.join()).sort()).toEqual(wanted.sort())
  }

  inLong(test)('operators that are left out keep their faults to themselves', async () => {
    const steps = ['decode', 0, 5, 'evict', 'decode', 0, 1]
    const env = { ...counting(['page-faults']), GGML2PERFETTO_STATES: '0' }
    const faultsOf = async (more: Record<string, string>) => {
      const { recording } = await record(steps, { env: { ...env, ...more } })
      return sum(
        recording
          .of('operator')
          .filter(({ call }) => call === 5)
          .map(counter(recording, 'page-faults')),
      )
    }
    // They read no weights.
    expect(await faultsOf({ GGML2PERFETTO_OPS: 'ROPE' })).toBeLessThan((await faultsOf({})) / 20)
  })

  inLong(perfTest)(
    'the task’s clock and context switches are those of the thread’s states (needs perf_event_open)',
    async () => {
      // Without taskset, who else computes must do.
      const hog = startHog().on('error', () => {})
      const env = counting(['context-switches', 'task-clock'])
      const stolenNs = stealing()
      const { recording } = await record(['decode', 0, 30], { env }).finally(() => hog.kill('SIGKILL'))
      const stolen = stolenNs()
      const [clock, switches] = [counter(recording, 'task-clock'), counter(recording, 'context-switches')]
      const told = scheduling(recording)
      const rows = recording.of('operator').map((operator) => ({
        counts: operator.counts,
        clockNs: clock(operator),
        switches: switches(operator),
        ...told(operator),
      }))
      const counted = rows.filter(({ counts }) => counts)
      expect(counted.length).toBeGreaterThan(0.95 * rows.length)
      const total = (key: 'clockNs' | 'ranNs' | 'switches' | 'stops') => sum(counted.map((row) => row[key]))
      expect((total('clockNs') + stolen) / total('ranNs')).toBeGreaterThan(0.97)
      expect(total('clockNs') / total('ranNs')).toBeLessThan(1.03)
      expect(total('switches')).toBeGreaterThan(0)
      // A switch between the two readings of a clock and a counter goes to either side.
      expect(counted.filter((row) => row.switches !== row.stops).length).toBeLessThan(counted.length / 200)
      expect(recording.issues).toEqual([])
    },
  )

  test('what the kernel counts needs no permission: not perf_event_open, which a filter denies', async () => {
    const names = [...EVERYWHERE, 'cycles', 'cpu-migrations']
    const { recording } = await record(['decode', 0, 3], {
      before: [...AS_USER, ...denied(['perf_event_open'])],
      env: counting(names),
    })
    expect(factsOf(recording)).toMatchObject({
      counters: EVERYWHERE.join(', '),
      'counters.missing': expect.stringMatching(/^cycles, cpu-migrations: perf_event_open is not allowed here/),
    })
    expect(recording.of('operator').filter(counter(recording, 'task-clock')).length).toBeGreaterThan(100)
    expect([recording.of('token').length, recording.issues]).toEqual([3, []])
  })

  inParts(settable).each(someOf([2, 3, 4], 3))(
    'perf_event_paranoid %i: what is not counted is told, and why',
    async (level) => {
      const env = counting(['cpu-migrations', 'page-faults', 'instructions'])
      const { recording } = await withSetting(PARANOID, level, () => record(['decode', 0, 3], { env }))
      const { counters, 'counters.missing': missing } = factsOf(recording)
      expect(counters).toMatch(/^page-faults(, instructions; .*user mode only.*)?$/)
      // Debian's and Android's kernels deny all from 3 on; others tell users of the kernel's own events up to 1.
      expect(missing).toMatch(/^cpu-migrations: .*perf_event_paranoid/)
      expect([recording.of('token').length, recording.issues]).toEqual([3, []])
    },
  )

  perfTest('a machine without hardware counters says so, and counts the rest (needs perf_event_open)', async () => {
    const names = ['cycles', 'r01c2', 'page-faults', 'instructions', 'no-such', 'nowhere/config=1/']
    const { recording } = await record(['decode', 0, 3], { env: counting(names) })
    const { counters, 'counters.missing': missing } = factsOf(recording)
    expect(missing).toContain(
      'no-such: there is no counter of that name; nowhere/config=1/: this machine has no such unit',
    )
    if (!NO_HARDWARE.test(missing!))
      return expect(counters).toMatch(/^cycles, .*page-faults, instructions; events read/)
    expect(missing).toMatch(/^cycles, r01c2, instructions: this machine/)
    expect(missing).toContain(`; software ones work: ${EVERYWHERE.join(', ')}`)
    expect(counters).toBe('page-faults')
    expect(recording.of('counted')).toHaveLength(1)
    expect(recording.issues).toEqual([])
  })

  test('record says what is not counted, even if it is to be quiet; info tells the totals', async () => {
    const { path } = await model('tinyDense')
    const log = inFolder('cli.ggtrace')
    const before = [...NODE, CLI, 'record', '-q', '-o', log, '--counters', 'page-faults,cycles', '--faults', '--']
    const env = { GGML2PERFETTO_STATES: '0' }
    const { stderr } = await runHosts(['load', 0, path, 'open', 0, 1, 'decode', 0, 3], { before, env })
    const { counters, attributes } = await summarizeFile(log)
    const missing = attributes['counters.missing']
    expect(stderr.replace(/^building the recorder.*\n/, '')).toBe(missing ? `  not counted: ${missing}\n` : '')
    if (missing) expect(missing).toMatch(/^cycles: \S/)
    const names = ['page-faults', ...(missing ? [] : ['cycles']), 'minor-faults', 'major-faults', 'bytes-read']
    expect(counters.map(({ name }) => name)).toEqual(names)
    const [node, ...flags] = NODE
    const info = execFileSync(node, [...flags, CLI, 'info', log], { encoding: 'utf8' })
    expect(info).toMatch(new RegExp(`page-faults +${counters[0]!.total}, in operators of all workers`))
  })

  rootTest('a group of events is read at once, and tells what getrusage and the task’s clock tell', async () => {
    const names = ['software/config=2/', 'page-faults', 'cpu-migrations', 'software/config=1/', 'task-clock']
    const steps = ['decode', 0, 3, 'evict', 'decode', 0, 3]
    const { recording } = await record(steps, { before: [], env: counting(names) })
    const { counters, 'counters.missing': missing } = factsOf(recording)
    expect([counters, missing]).toEqual([`${names.join(', ')}; events read by the kernel`, undefined])
    const of = (name: string) => recording.of('operator').map(counter(recording, name))
    expect(of('software/config=2/')).toEqual(of('page-faults'))
    expect(sum(of('page-faults'))).toBeGreaterThan(20)
    // Read one after the other, at each end of an operator: where the machine is busy, hundreds of nanoseconds apart.
    const clocks = of('task-clock')
    const apart = Math.abs(sum(of('software/config=1/')) - sum(clocks))
    expect(apart).toBeLessThan(0.03 * sum(clocks) + 1000 * clocks.length)
    expect(sum(clocks)).toBeGreaterThan(2 * apart)
    expect(recording.issues).toEqual([])
  })

  inLong(rootTest)(
    'threads without a file descriptor left count what needs none, and say so (needs prlimit)',
    async () => {
      const { recording } = await record(['decode', 0, 1], {
        before: ['prlimit', '--nofile=11'],
        env: { ...counting(['cpu-migrations', 'task-clock']), GGML2PERFETTO_STATES: '0' },
        threads: 8,
      })
      expect(factsOf(recording)['counters']).toMatch(/^cpu-migrations, task-clock; /)
      expect(recording.issues.length).toBeGreaterThan(0)
      for (const issue of recording.issues) {
        expect(issue).toMatch(
          /^lost counters of a thread: 1 record .* counters of this thread: there is no file descriptor left/,
        )
      }
      const clock = counter(recording, 'task-clock')
      const workers = new Set(
        recording.of('operator').flatMap((operator) => (clock(operator) > 0 ? [operator.worker] : [])),
      )
      expect(workers.size).toBe(8)
    },
  )

  test('all names that record takes are known to the recorder, in two goes', async () => {
    for (const names of [COUNTERS.slice(0, 9), COUNTERS.slice(9)]) {
      const { recording } = await record(['decode', 0, 1], { env: counting(names) })
      expect(factsOf(recording)['counters.missing'] ?? '').not.toMatch(/no counter of that name|too many/)
    }
  })

  inLong(test)('one thread alone: its task’s clock is nearly all of its CPU time', async () => {
    const steps = ['decode', 0, 2, 'times', 'decode', 0, 40, 'times']
    const { recording, result } = await record(steps, { env: counting(['task-clock']), threads: 1 })
    const [first, second] = result.lines.filter(({ event }) => (event as string) === 'times') as unknown as {
      readonly cpu: Readonly<Record<string, number>>
    }[]
    const clock = counter(recording, 'task-clock')
    const counted = sum(recording.of('operator').flatMap((operator) => (operator.call >= 2 ? [clock(operator)] : [])))
    const used = sum(Object.keys(second!.cpu).map((tid) => second!.cpu[tid]! - (first!.cpu[tid] ?? 0)))
    expect(counted / used).toBeLessThan(1)
    expect(counted / used).toBeGreaterThan(0.7)
  })
})

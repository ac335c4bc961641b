import { execFileSync } from 'node:child_process'
import { describe, expect, test } from '@jest/globals'
import { FORMATS, summarize } from '../../lib/index.ts'
import {
  eventsIn,
  FIXTURE_NAMES,
  formatOf,
  pathOf,
  plainBytes,
  SCHEDULER_FIXTURES,
  storedBytes,
} from '../line/support.ts'
import { expectedIn } from './sched-lines.ts'
import { flat, inputOf } from './sched-text.ts'

/** Texts of the scheduler's events, as the tools really write them (scripts/capture-sched.mjs). */

/** Perf's own records are no tracepoints: what they tell is looked at by itself. */
const LLAMA = /^bpftrace\/(?!sched)/
const SCHEDULER = SCHEDULER_FIXTURES.filter((name) => !LLAMA.test(name))
const WITHOUT_RECORDS = SCHEDULER.filter((name) => name !== 'perf-script/task-events.txt')

describe('a capture', () => {
  test.each(SCHEDULER_FIXTURES)('%s is of the format that its folder names, and of no other', (fixture) => {
    const head = plainBytes(fixture).subarray(0, 4096)
    expect(FORMATS.filter((format) => format.sniff(head)).map(({ name }) => name)).toEqual([formatOf(fixture)])
  })

  test.each(FIXTURE_NAMES)('%s is none', (fixture) => {
    const head = plainBytes(fixture).subarray(0, 4096)
    const ours = FORMATS.filter(({ name }) => ['ftrace', 'perf-script', 'bpftrace'].includes(name))
    expect(ours).toHaveLength(3)
    expect(ours.filter((format) => format.sniff(head))).toEqual([])
  })

  test.each(WITHOUT_RECORDS)('%s: every event as an independent reading has it, in order of time', async (fixture) => {
    const { events, names } = await eventsIn(plainBytes(fixture))
    const text = Buffer.from(storedBytes(fixture)).toString()
    const moved = /moves all times by (-?[\d.]+) ms/.exec(`${inputOf(events).attributes['clock_from']}`)
    const movedNs = BigInt(Math.round(Number(moved?.[1] ?? 0) * 1e6))
    const expected = expectedIn(text, formatOf(fixture))
    expect(flat(events, names, movedNs)).toEqual(expected)
    expect(expected.length).toBeGreaterThan(5)
  })

  test.each(SCHEDULER)('%s: as many as grep counts', async (fixture) => {
    const { events } = await eventsIn(plainBytes(fixture))
    const grep = (pattern: string) =>
      Number(execFileSync('sh', ['-c', `grep -acE '${pattern}' '${pathOf(fixture)}' || true`], { encoding: 'utf8' }))
    const count = (kind: string) => events.filter((event) => event.kind === kind).length
    expect(count('switch')).toBe(grep('sched_switch: |g2p switch '))
    expect(count('waking')).toBe(grep('sched_waking: |g2p waking '))
    const threads = events.filter((event) => event.kind === 'thread' && event.what !== 'known')
    const records = '[1-9][0-9]*\\.[0-9]+: PERF_RECORD_(COMM|FORK|EXIT)'
    const traced = '(sched_process_(fork|exec|exit)|task_rename): |g2p (fork|rename|exit) '
    expect(threads.length).toBe(grep(`${traced}|${records}`))
  })

  test.each(SCHEDULER_FIXTURES)('%s: nothing is wrong with it but what was lost', async (fixture) => {
    const { events } = await eventsIn(plainBytes(fixture))
    // Some kernels leave out switches from the idle task: that is told by whoever puts switches together.
    const issues = events.flatMap((event) =>
      event.kind === 'issue' && event.title !== 'lost switches' ? [`${event.title}: ${event.detail}`] : [],
    )
    const isLossy = /overwritten|lost/.test(fixture)
    const told = issues.filter((issue) => !issue.startsWith(isLossy ? 'lost records' : 'no CPU recorded'))
    expect(told).toEqual([])
    expect(issues.length > 0).toBe(isLossy || fixture.includes('no-cpu'))
  })
})

test.each(['sched:sched_waking: comm=b pid=6 prio=120 target_cpu=001', 'PERF_RECORD_COMM: b:6/6'])(
  "a thread that perf knows no more, in a text's head, does not make it ftrace's: %s",
  (event) => {
    const head = new TextEncoder().encode(`             :-1    -1/-1    [000] 25128.713301000: ${event}\n`)
    expect(FORMATS.filter((format) => format.sniff(head)).map(({ name }) => name)).toEqual(['perf-script'])
  },
)

test('the events that are not read are counted', async () => {
  const { left_out } = await summarize({ name: 'trace.txt', source: plainBytes('ftrace/trace.txt') })
  const text = Buffer.from(plainBytes('ftrace/trace.txt')).toString()
  const count = (name: string) => text.match(new RegExp(`: ${name}: `, 'g'))?.length
  const what = 'softirq_raise'
  expect(left_out).toContainEqual(expect.objectContaining({ what, count: count(what) }))
  // These say what the sched_wakings ahead of them said.
  expect(left_out.map(({ what }) => what)).not.toContain('sched_wakeup')
})

test("perf's own records tell of threads and their processes", async () => {
  const { events, names } = await eventsIn(plainBytes('perf-script/task-events.txt'))
  const threads = events.flatMap((event) => (event.kind === 'thread' ? [event] : []))
  const odd = threads.find(
    ({ what, tgid, comm }) => what === 'rename' && tgid > 0 && names.text(comm) === 'x-12 [000] d..',
  )!
  expect(odd.tgid).toBeGreaterThan(0)
  const forks = threads.filter(({ what, tid }) => what === 'fork' && tid === odd.tid)
  expect(forks.map(({ tgid, parentTid }) => [tgid, parentTid])).toEqual([
    [odd.tgid, odd.tgid],
    [-1, odd.tgid], // the tracepoint tells no process
  ])
  const before = threads.filter(({ what, atNs }) => what === 'known' && atNs === 0)
  expect(before.map(({ tgid, comm }) => [names.text(comm), tgid])).toContainEqual(['rcu_preempt', 15])
})

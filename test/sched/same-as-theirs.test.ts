import { describe, expect, test } from '@jest/globals'
import { openTrace } from '../../lib/node.ts'
import { formatOf, plainBytes, SCHEDULER_FIXTURES } from '../line/support.ts'
import { inLong, inParts, someOf } from '../long.ts'
import { reportOf, scriptOf } from '../read/sched/texts.ts'
import { expectedIn } from '../read/sched-lines.ts'
import { type Act, actOf, actsSaid, ours, plainSystrace, systraceOf, theirs } from './systrace.ts'

/**
 * CPU slices and thread states of every kind of capture are, row for row, those that trace_processor computes without us: from
 * the capture itself where it can read it, else from the text that the capture's own tool makes of it.
 */

/** Texts that trace_processor reads itself, `trace_pipe`'s with the first line that it lacks. */
const READ_BY_THEM = SCHEDULER_FIXTURES.filter((name) =>
  /^ftrace\/trace(-boot|-local|-tgid|-no-irq|-tgid-no-irq|-overwritten|-pipe-lost|-marks)?\.txt$/.test(name),
)
/** Texts with switches and CPUs. */
const TEXTS = SCHEDULER_FIXTURES.filter((name) => !/no-cpu|^bpftrace\/(?!sched)/.test(name))
const DATS = ['mono-v6', 'local-v6', 'local-v7-zstd', 'boot-v7', 'boot-v7-zlib', 'instance-v6']
const PERFS = ['mono', 'own-clock', 'zstd', 'pipe', 'switches', 'lossy']
/** A marker, or the offset to wall-clock time, moves all of its times. */
const MOVED = /trace-local|instance-v6/

const capture = (fixture: string) => ({ name: fixture, source: plainBytes(fixture) })
const textOf = (fixture: string) => Buffer.from(plainBytes(fixture)).toString()
const hasMicroseconds = (acts: readonly Act[]) => acts.every(({ ns }) => ns % 1000n === 0n)

async function expectSame(fixture: string, acts: readonly Act[], systrace = systraceOf(acts)): Promise<void> {
  const ns = hasMicroseconds(acts) ? 1000 : 1
  const { tables, missing, wakings, problems } = await ours(capture(fixture), ns)
  const expected = await theirs(systrace, ns)
  expect(tables.slices).toEqual(expected.slices)
  expect(tables.states).toEqual(expected.states)
  if (!MOVED.test(fixture)) expect(tables.startNs).toBe(expected.startNs)
  expect(problems).toEqual([])
  const count = (what: string) => acts.filter((act) => act.what === what).length
  expect(count('switch')).toBeGreaterThan(3)
  expect([missing, wakings]).toEqual([systrace.missing, count('waking')])
  expect(tables.slices).toHaveLength(count('switch') + missing)
}

const actsIn = (fixture: string) =>
  expectedIn(textOf(fixture), formatOf(fixture)).flatMap((expected) => actOf(expected) ?? [])

describe('equal to what trace_processor makes of the capture itself', () => {
  expect(READ_BY_THEM).toHaveLength(9)
  inParts(test).each(someOf(READ_BY_THEM, 4))('%s', async (fixture) => {
    const systrace = plainSystrace(textOf(fixture))
    // All of these captures are whole: nothing was put in.
    expect(systrace.missing).toBe(0)
    await expectSame(fixture, actsIn(fixture), systrace)
  })
})

describe("equal to what trace_processor makes of the tool's own text", () => {
  inParts(test).each(someOf(TEXTS, 6))('%s', async (fixture) => {
    await expectSame(fixture, actsIn(fixture))
  })

  inParts(test).each(someOf(DATS, 2))('trace-dat/%s', async (name) => {
    await expectSame(`trace-dat/${name}.dat.gz`, actsSaid(reportOf(`trace-dat/${name}.txt.gz`)))
  })

  inParts(test).each(someOf(PERFS, 2))('perf-data/%s', async (name) => {
    await expectSame(`perf-data/${name}.data.gz`, actsSaid(scriptOf(`perf-data/${name}.txt.gz`)))
  })
})

inLong(test)('trace_processor reads none of the other kinds by itself', async () => {
  const others = ['trace-dat/mono-v6.dat.gz', 'perf-data/mono.data.gz', 'perf-data/pipe.data.gz', 'bpftrace/sched.txt']
  for (const fixture of [...others, ...TEXTS.filter((name) => !READ_BY_THEM.includes(name))]) {
    const slices = await openTrace(plainBytes(fixture)).then(
      (trace) => trace.query('select count(*) from sched').rows[0]![0],
      (error: Error) => error.message,
    )
    // It takes the numbers that `report -R` has for states to be letters.
    if (fixture === 'ftrace/report-raw.txt') expect(slices).toBe(33)
    else
      expect([fixture, slices === 0 || /cannot read this trace/.test(`${slices}`) || slices]).toEqual([fixture, true])
  }
})

import { Readable } from 'node:stream'
import { describe, expect, test } from '@jest/globals'
import { UNKNOWN } from '../../lib/core.ts'
import { convert, type Names, type TraceEvent } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import { findView, viewerUrl } from '../../lib/sql.ts'
import { input, inputEvent, type Step, switchOf, wakingOf } from '../sched/schedule.ts'

/** The track *Why slow*: operators that took far longer than others of their kind, and by what. */

const WORKER = 101
const [GIT, NODE] = [14917, 14318]
const MS = 1e6
/** An operator of each kind is slow: it takes this long. */
const SLOW_NS = 100 * MS

interface Slow {
  readonly innerWaitNs?: number
  readonly counts?: readonly number[]
}

/** A log of one worker: of each kind nine operators of 1 ms, and then one of 100 ms, which begins at 10, 210, 410 … ms. */
const log = (kinds: readonly Slow[]) =>
  input(
    'log',
    (names): TraceEvent[] => {
      const events: TraceEvent[] = ['minor-faults', 'major-faults', 'bytes-read'].map((name, index) => ({
        kind: 'counted',
        index,
        name: names.id(name),
        unit: index === 2 ? 'bytes' : 'count',
      }))
      for (const [kind, fields] of kinds.entries()) {
        const tensor = { ...UNKNOWN.tensor, id: kind, name: names.id(`op${kind}-0`), layer: 0, op: names.id('MUL_MAT') }
        events.push({ ...tensor, ne: [64, 8, 1, 1] })
        for (let i = 0; i < 10; i++) {
          const startNs = 200 * MS * kind + (1 + i) * MS
          const endNs = startNs + (i === 9 ? SLOW_NS : MS)
          const times = { startNs, endNs, waitEndNs: endNs }
          const found = i === 9 ? fields : { counts: fields.counts && [1, 0, 0] }
          events.push({ ...UNKNOWN.operator, tensor: kind, worker: 0, tid: WORKER, call: 0, ...times, ...found })
        }
      }
      return events
    },
    inputEvent({ attributes: { pid: '100', kernel: '6.1.0' } }),
  )

/** Switches of a CPU on which the worker runs from 0 on, at times in ms: by turns the worker leaves it, and takes it again. */
const switches = (steps: readonly (Omit<Step, 'cpu'> & { readonly wokenAt?: number })[]) =>
  input('switches', (names: Names) => [
    switchOf(names, { cpu: 1, at: 1000, from: 0, to: WORKER }),
    ...steps.flatMap(({ wokenAt, ...step }) => [
      ...(wokenAt === undefined ? [] : [wakingOf(names, 1, wokenAt * MS, 0, WORKER)]),
      switchOf(names, { ...step, cpu: 1, at: step.at * MS }),
    ]),
  ])

async function bytesOf(trace: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const pieces: Uint8Array[] = []
  for await (const piece of trace) pieces.push(piece)
  return Buffer.concat(pieces)
}

/** The slices that the UI makes of the command, the same way, and whether it finds the operator of each. */
async function slowOf(...inputs: Parameters<typeof convert>[0][]): Promise<{ names: string[]; found: unknown[] }> {
  const bytes = await bytesOf(convert(inputs.flat() as Parameters<typeof convert>[0]))
  const view = await findView(Readable.from([bytes]))
  const url = viewerUrl(`http://127.0.0.1:9001/${'x'.repeat(22)}/a-rather-long-name.ggtrace.pftrace`, view, 2000)
  expect(url.length).toBeLessThan(2000)
  const [sql, title] = view.commands.find(({ id }) => id === 'dev.perfetto.AddDebugSliceTrack')!.args
  expect(title).toBe('Why slow')
  const trace = await openTrace(bytes)
  try {
    expect(trace.query(`with data as (${sql}) select * from data limit 0`).columns).toEqual(
      expect.arrayContaining(['id', 'track_id', 'ts', 'dur', 'name']),
    )
    trace.query(`create perfetto table debug as with data as (${sql}) select * from data order by ts`)
    return {
      names: trace.query('select name from debug').rows.map(([name]) => String(name)),
      found: trace
        .query(
          "select slice.name from debug join slice using (id, ts, dur, track_id) where category = 'operator' order by ts",
        )
        .rows.flat(),
    }
  } finally {
    trace.close()
  }
}

describe('a slow operator is named by what took its time', () => {
  test('the thread that had the CPU longest, a disk, a CPU that was late; nothing, where nothing is recorded', async () => {
    const { names, found } = await slowOf(
      log([{}, {}, {}, {}]),
      switches([
        { at: 20, from: WORKER, to: NODE },
        { at: 30, from: NODE, left: 1, to: WORKER },
        { at: 40, from: WORKER, to: GIT },
        { at: 70, from: GIT, left: 1, to: WORKER },
        { at: 80, from: WORKER, to: GIT },
        { at: 106, from: GIT, left: 1, to: WORKER },
        { at: 220, from: WORKER, left: 2, to: 0 },
        { at: 262, wokenAt: 250, from: 0, to: WORKER },
        { at: 420, from: WORKER, to: NODE },
        { at: 424, from: NODE, left: 1, to: WORKER }, // too little to be a cause
        { at: 720, from: WORKER, left: 1, to: 0 },
      ]),
    )
    expect(names).toEqual([
      'worker 0: op0 MUL_MAT ×100 · preempted 66 % by task 14917 14917',
      'worker 0: op1 MUL_MAT ×100 · blocked (D) 30 % · runnable (woken) 12 %',
      'worker 0: op2 MUL_MAT ×100',
      'worker 0: op3 MUL_MAT ×100',
    ])
    expect(found).toEqual(['op0 MUL_MAT', 'op1 MUL_MAT', 'op2 MUL_MAT', 'op3 MUL_MAT'])
  })

  test('a wait in it is named as far as its worker had a CPU: shares are parts of its time', async () => {
    const { names } = await slowOf(
      log([{ innerWaitNs: 90 * MS }]),
      switches([
        { at: 20, from: WORKER, to: NODE },
        { at: 90, from: NODE, left: 1, to: WORKER },
      ]),
    )
    expect(names).toEqual(['worker 0: op0 MUL_MAT ×100 · preempted 70 % by task 14318 14318 · waiting 30 %'])
  })

  test('by what was counted and waited for in it, of which the log tells', async () => {
    const { names } = await slowOf(
      log([{ innerWaitNs: 40 * MS }, { counts: [1, 12, 3_400_000] }, { counts: [9, 0, 0] }, { counts: [0, 1, 0] }]),
    )
    expect(names).toEqual([
      'worker 0: op0 MUL_MAT ×100 · waiting 40 %',
      'worker 0: op1 MUL_MAT ×100 · major faults 12 · 3.4 MB read',
      'worker 0: op2 MUL_MAT ×100',
      'worker 0: op3 MUL_MAT ×100 · major faults 1',
    ])
  })
})

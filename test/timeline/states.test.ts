import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { type StateEvent, UNKNOWN } from '../../lib/core.ts'
import { convert, type EventInput, type TraceEvent } from '../../lib/index.ts'
import { inputOf, openTrace } from '../../lib/node.ts'
import { inParts, someOf } from '../long.ts'
import { drawn } from '../printing-sink.ts'

/** Rows of the states of workers' threads: in a call, there is a state at any time. */

const FIXTURES = 'test/fixtures'
const LOGS = [
  ...['examples/moe.ggtrace.gz', 'examples/llama.ggtrace.gz', 'examples/qwen2.ggtrace.gz'],
  ...['findings', 'ggtrace', 'profinfer-csv', 'bpftrace'].flatMap((format) =>
    readdirSync(join(FIXTURES, format))
      .filter((name) => !name.endsWith('.md'))
      .map((name) => join(FIXTURES, format, name)),
  ),
]

/** Time of calls in which a row has states, without that of the states; a state that is inferred may end 1 ns before the next one. */
const HOLES = `with state as (select s.track_id as row, s.ts, s.ts + s.dur + (extract_arg(s.arg_set_id, 'debug.inferred') is not null) as end from slice s
    join track t on t.id = s.track_id where s.category = 'state' and t.name glob 'worker [0-9]*: state*'),
  call as (select id, ts, ts + dur as end from slice where category = 'token'),
  part as (select call.id, row, call.end - call.ts as dur, min(state.end, call.end) - max(state.ts, call.ts) as known
    from call join state on state.ts < call.end and state.end > call.ts)
  select row, id, dur - sum(known) from part group by row, id having sum(known) < dur`

const RUNS = [
  ...LOGS.map((log) => [log]),
  ['test/fixtures/session/run.ggtrace.gz', 'test/fixtures/session/run.sched.dat.gz'],
]
inParts(test).each(someOf(RUNS, 4, RUNS.length - 1))('no state row has a hole in a call: %s %s', async (...paths) => {
  const trace = await openTrace(convert(paths.map((path) => inputOf(path!))))
  expect(trace.query(HOLES).rows).toEqual([])
  trace.close()
})

test('of a log of states alone, the first eight threads are rows of the run', async () => {
  const input: EventInput = {
    name: 'states',
    *events(names) {
      yield [
        { kind: 'input', format: 'test', clock: 'MONOTONIC', originNs: 5n, attributes: {} },
        ...[0, 10].flatMap((atNs) =>
          Array.from({ length: 9 }, (_, i): StateEvent => {
            const state = atNs === 0 ? 'blocked' : 'ended'
            return { kind: 'state', tid: 1 + i, cpu: 0, state, atNs, thread: names.id(`t ${1 + i}`) }
          }),
        ),
      ]
    },
  }
  expect(await drawn(input, {}, { rows: /./, args: [] })).toEqual([
    ...[1, 2, 3, 4, 5, 6, 7, 8].map((tid) => `t ${tid}: state | 0–10 blocked`),
    'Thread states/t 9 | 0–10 blocked',
  ])
})

test('threads of one graph each, one that starts late, and one that leaves its CPU for an unknown reason', async () => {
  const state = (tid: number, atNs: number, what: StateEvent['state']): StateEvent =>
    ({ kind: 'state', tid, cpu: 1, state: what, atNs }) as const
  const call = (index: number, startNs: number): TraceEvent => ({
    ...UNKNOWN.token,
    ...{ call: index, phase: 'decode', tokens: 1, startNs, endNs: startNs + 1000, tid: 1 },
  })
  const input: EventInput = {
    name: 'states',
    *events(names) {
      const operator = (tid: number, worker: number, index: number, startNs: number) =>
        ({
          ...UNKNOWN.operator,
          tensor: 0,
          tid,
          worker,
          call: index,
          startNs,
          endNs: startNs + 50,
          waitEndNs: startNs + 50,
        }) as const
      yield [
        { kind: 'input', format: 'test', clock: 'MONOTONIC', originNs: 5n, attributes: {} },
        { ...UNKNOWN.tensor, id: 0, name: names.id('a-0') },
        ...[state(1, 0, 'running'), operator(1, 0, 0, 300), operator(2, 1, 0, 300)],
        ...[state(2, 200, 'running'), state(2, 800, 'ended'), call(0, 0)],
        ...[call(1, 1000), call(2, 2000)],
        ...[operator(3, 1, 2, 2500), state(3, 2400, 'running'), state(3, 2600, 'off'), state(3, 2700, 'running')],
        ...[state(1, 3000, 'ended'), state(3, 2900, 'ended')],
      ]
    },
  }
  expect(await drawn(input, {}, { rows: /: state/, args: [] })).toEqual([
    'worker 1: state | 0–199 starting',
    'worker 1: state | 200–800 running on CPU 1',
    'worker 1: state | 800–1000 ended',
    'worker 1: state | 2000–2399 starting',
    'worker 1: state | 2400–2600 running on CPU 1',
    'worker 1: state | 2600–2699 not running',
    'worker 1: state | 2700–2900 running on CPU 1',
    'worker 1: state | 2900–3000 ended',
    'worker 0: state | 0–3000 running on CPU 1',
  ])
})

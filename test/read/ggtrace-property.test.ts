import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { Inferred } from '../../lib/core.ts'
import type { TraceEvent } from '../../lib/index.ts'
import { begun, read } from './ggtrace-logs.ts'

test('any sequence of records is read as it was written', async () => {
  const time = fc.integer({ min: 0, max: 2 ** 45 })
  const span = fc
    .tuple(time, fc.integer({ min: 0, max: 2 ** 34 }))
    .map(([startNs, dur]) => ({ startNs, endNs: startNs + dur }))
  const count = fc.integer({ min: 0, max: 2 ** 53 - 1 })
  const known = fc.integer({ min: -1, max: 2 ** 53 - 1 })
  const resources = fc.record({
    ...{
      minorFaults: count,
      majorFaults: count,
      bytesRead: count,
      processCpuNs: count,
      cpuNs: known,
      waitingNs: known,
    },
  })
  const record = fc.oneof(
    fc.record({
      kind: fc.constant('operator' as const),
      span,
      // Small records end at these.
      compute: fc.option(fc.integer({ min: 2 ** 24 - 2, max: 2 ** 24 + 1 }), { nil: undefined }),
      follows: fc.boolean(),
      wait: fc.oneof(fc.integer({ min: 0, max: 2 ** 33 }), fc.integer({ min: 2 ** 20 - 2, max: 2 ** 20 + 1 })),
      inner: fc.constantFrom(0, 0, 5, 2 ** 32 - 1),
      fused: fc.boolean(),
      counts: fc.array(fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 2 ** 53 - 1 })), { maxLength: 16 }),
      isScaled: fc.boolean(),
      call: fc.integer({ min: -1, max: 5 }),
    }),
    fc.record({ kind: fc.constant('graph' as const), span, call: fc.integer({ min: -1, max: 2 ** 31 }) }),
    fc.record({
      kind: fc.constant('counter' as const),
      at: time,
      value: fc.double({ noNaN: true, noDefaultInfinity: true }),
    }),
    fc.record({
      kind: fc.constant('token' as const),
      span,
      spans: fc.array(fc.record({ sequence: fc.nat(), position: fc.integer({ min: -1 }), tokens: fc.nat() }), {
        maxLength: 40,
      }),
      resources: fc.option(resources, { nil: undefined }),
    }),
    fc.record({ kind: fc.constant('load' as const), span, resources: fc.option(resources, { nil: undefined }) }),
    fc.record({ kind: fc.constant('experts' as const), at: time, ids: fc.array(fc.integer(), { maxLength: 40 }) }),
  )
  const blockBytes = fc.integer({ min: 8, max: 200 }).map((n) => 8 * n)
  await fc.assert(
    fc.asyncProperty(fc.array(record, { maxLength: 60 }), blockBytes, async (records, size) => {
      const writer = begun({}, size)
      writer.type(0, 'f32')
      const [a, b] = [writer.tensor({ name: 'a-0' }), writer.tensor({ name: 'b-0' })]
      const name = writer.name('count')
      for (let i = 0; i < 16; i++) writer.counted(`r${i}`)
      const thread = writer.thread(5, 3)
      let lastNs = 1
      const expected = records.map((entry): Partial<TraceEvent> => {
        if (entry.kind === 'operator') {
          const { span, compute, follows, wait, inner, fused, call, counts, isScaled } = entry
          thread.call = call
          const startNs = follows ? lastNs : span.startNs
          const endNs = startNs + (compute ?? span.endNs - span.startNs)
          const times = { startNs, endNs, waitEndNs: endNs + wait }
          lastNs = times.waitEndNs
          thread.operator({
            tensor: a,
            ...times,
            innerWaitNs: inner,
            ...(fused ? { fusedTo: b } : {}),
            counts,
            isScaled,
          })
          const last = counts.findLastIndex((count) => count > 0)
          const extra = {
            innerWaitNs: inner || undefined,
            fusedTo: fused ? 1 : undefined,
            counts: last < 0 && !isScaled ? undefined : counts.slice(0, last + 1),
            inferred: isScaled ? Inferred.Counts : 0,
          }
          return { kind: 'operator', call, tensor: 0, worker: 3, tid: 5, ...times, ...extra }
        }
        if (entry.kind === 'graph') {
          thread.graph({ ...entry.span, graph: 0, call: entry.call })
          return { kind: 'graph', ...entry.span, call: entry.call }
        }
        if (entry.kind === 'load') {
          const { span, resources } = entry
          thread.function({ ...span, what: 'load-model', ...(resources && { resources }) })
          return { kind: 'function', ...span, what: 'load-model', resources }
        }
        if (entry.kind === 'token') {
          const { resources } = entry
          thread.token({ ...entry.span, call: 0, tokens: 1, spans: entry.spans, ...(resources && { resources }) })
          return {
            kind: 'token',
            ...entry.span,
            resources,
            batch: {
              function: 'llama_decode' as const,
              areAllOutput: false,
              isLeftOut: false,
              result: 0,
              context: 0,
              spans: entry.spans,
            },
          }
        }
        if (entry.kind === 'counter') {
          thread.counter(entry.at, name, entry.value)
          return { kind: 'counter', atNs: entry.at, value: entry.value }
        }
        thread.experts({ atNs: entry.at, tensor: a, call: 0, k: 1, ids: entry.ids })
        return { kind: 'experts', atNs: entry.at, ids: Int32Array.from(entry.ids) }
      })
      writer.end(2 ** 46)
      const { events, issues } = await read(writer.take())
      expect(issues).toEqual([])
      const found = events.filter(({ kind }) =>
        ['operator', 'graph', 'token', 'counter', 'experts', 'function'].includes(kind),
      )
      // A call comes when the end of its work is known: after others, where functions that may wait for it are recorded.
      for (const isCall of [true, false]) {
        const of = (events: readonly Partial<TraceEvent>[]) =>
          events.filter(({ kind }) => (kind === 'token') === isCall)
        expect(of(found)).toMatchObject(of(expected))
      }
    }),
    { numRuns: 300 },
  )
})

test('an operator of a tensor whose id has more than 20 bits keeps its id', async () => {
  const writer = begun()
  const thread = writer.thread(5, 3)
  for (const tensor of [2 ** 20 - 1, 2 ** 20]) thread.operator({ tensor, startNs: 10, endNs: 10 })
  writer.end(20)
  const { issues } = await read(writer.take())
  expect(issues.map((issue) => /\d+/.exec(issue)?.[0])).toEqual(['1048575', '1048576'])
})

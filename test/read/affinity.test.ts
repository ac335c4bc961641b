import { expect, test } from '@jest/globals'
import { eventsOf, Names, type TraceEvent } from '../../lib/index.ts'
import { begun } from './ggtrace-logs.ts'

/** Records of where workers run. */
test('AFFINITY: the worker and the thread of its block, the CPU, and the list of those on which it may run', async () => {
  const writer = begun()
  const thread = writer.thread(701, 3)
  thread.affinity(1000, 11, writer.name('8-11'))
  thread.affinity(2000, -1)
  writer.end(3000)
  const names = new Names()
  const events: TraceEvent[] = []
  for await (const batch of eventsOf({ name: 'log', source: writer.take() }, names)) events.push(...batch)
  const found = events.filter((event) => event.kind === 'affinity')
  expect(found).toEqual([
    { kind: 'affinity', worker: 3, tid: 701, atNs: found[0]!.atNs, cpu: 11, allowed: names.id('8-11') },
    { kind: 'affinity', worker: 3, tid: 701, atNs: found[0]!.atNs + 1000, cpu: -1, allowed: 0 },
  ])
})

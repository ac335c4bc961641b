import { readFileSync } from 'node:fs'
import { describe, expect, it } from '@jest/globals'
import { GgtraceWriter, type TaskEvent } from '../../lib/core.ts'
import { convert, eventsOf, type Input, Names } from '../../lib/index.ts'
import { fixture } from './answers.ts'

/** A server's log together with a recording of the same run: both are put on one clock, by the steps of their tasks. */

const LOG = readFileSync(fixture('v0.5.0-lv4.log'), 'utf8')
const log = (text = LOG): Input => ({ name: 'server.log', source: new TextEncoder().encode(text) })
const ORIGIN_NS = 4_000_000_000_123n
/** The recorder's times: this long after the server's, and up to 60 µs before the line was written, of launches up to 0.6 ms. */
const OFFSET_NS = 1_234_567_890

async function stepsOf(input: Input): Promise<TaskEvent[]> {
  const steps: TaskEvent[] = []
  for await (const batch of eventsOf(input, new Names())) {
    for (const event of batch) if (event.kind === 'task') steps.push(event)
  }
  return steps
}

/** A recording of the same run: launches and releases of its tasks; `shiftNs` moves one of them. */
async function recording(shiftNs: (i: number) => number): Promise<Input> {
  const writer = new GgtraceWriter({ originNs: ORIGIN_NS })
  const host = writer.thread(700)
  const steps = (await stepsOf(log())).flatMap(({ what, ...step }) => {
    return what === 'launch' || what === 'release' ? [{ what, ...step }] : []
  })
  steps.forEach(({ what, atNs, task, slot }, i) => {
    const earlyNs = what === 'launch' ? 100_000 + ((i * 7919) % 500_000) : (i * 7919) % 60_000
    host.task({ what, task, slot, atNs: atNs + OFFSET_NS - earlyNs + shiftNs(i) })
  })
  writer.end(10_000_000_000)
  return { name: 'run.ggtrace', source: writer.take() }
}

/** The summary of the log, converted together with a recording. */
async function relation(...inputs: Input[]) {
  const conversion = convert(inputs)
  for (;;) {
    const next = await conversion.next()
    if (next.done) return next.value[1]!.relation!
  }
}

describe('a server’s log beside a recording', () => {
  it('is placed by the tasks of both, and the error is stated', async () => {
    const { how, offset_ns, bound_ns, to } = await relation(await recording(() => 0), log())
    expect([to, how]).toEqual([
      'MONOTONIC',
      expect.stringMatching(/tasks that both inputs record: \d+ of \d+ observations agree/),
    ])
    const error = Number(BigInt(offset_ns) - ORIGIN_NS) - OFFSET_NS
    expect(Math.abs(error)).toBeLessThanOrEqual(bound_ns!)
    expect(bound_ns).toBeLessThanOrEqual(100_000)
  })

  it('also where some steps were late, as of a thread that had no CPU', async () => {
    const late = await recording((i) => (i % 3 === 0 ? -5_000_000 : 0))
    expect(
      Math.abs(Number(BigInt((await relation(late, log())).offset_ns) - ORIGIN_NS) - OFFSET_NS),
    ).toBeLessThanOrEqual(100_000)
  })

  it('of another run is refused', async () => {
    const other = await recording((i) => i * 3_000_000)
    await expect(relation(other, log())).rejects.toThrow('no known relation')
    const few = LOG.split('\n').filter((line) => !/ task (?:[1-9]\d*) \| /.test(line))
    await expect(relation(await recording(() => 0), log(few.join('\n')))).rejects.toThrow('no known relation')
  })
})

import { describe, expect, test } from '@jest/globals'
import { eventsOf, Names, type TraceEvent } from '../../lib/index.ts'
import { cut, formatOf, plainBytes, randomOf, SCHEDULER_FIXTURES } from '../line/support.ts'

/**
 * Damaged texts of scheduler events: cut anywhere, any byte changed, lines without end. Each ends in events that make sense, or in
 * a message for a person; and is the same however it comes in pieces.
 */

/** As much of each capture is damaged. */
const START_BYTES = 1800
const CHANGES = 100
const PIECES_EVERY = 19

type Outcome = readonly TraceEvent[] | string

async function attempt(source: Uint8Array | AsyncIterable<Uint8Array>, from: string, what: string): Promise<Outcome> {
  const events: TraceEvent[] = []
  try {
    for await (const batch of eventsOf({ name: 'log', source }, new Names(), { from })) events.push(...batch)
  } catch (error) {
    const { name, message, stack } = error as Error
    if (name !== 'FormatError' && name !== 'UsageError') throw new Error(`${what}: ${stack}`, { cause: error })
    if (message.split('\n').length > 3) throw new Error(`${what}: a message of many lines: ${message}`)
    return message
  }
  const faults = faultsOf(events)
  if (faults.length > 0) throw new Error(`${what}: ${faults[0]}`)
  return events
}

function faultsOf(events: readonly TraceEvent[]): string[] {
  const faults: string[] = []
  if (events[0]?.kind !== 'input') faults.push('the input is not told first')
  let lastNs = -Infinity
  for (const event of events) {
    if (event.kind === 'input' || event.kind === 'facts' || event.kind === 'clocks') continue
    for (const [key, value] of Object.entries(event)) {
      if (typeof value === 'number' && !Number.isSafeInteger(value)) faults.push(`${event.kind}: ${key} is ${value}`)
    }
    if (event.kind === 'issue') {
      if (!/^[\x20-\x7e]*$/.test(event.detail) || event.detail.length > 400) faults.push(`a detail: ${event.detail}`)
      continue
    }
    if (!('atNs' in event)) continue // of llama.cpp: in order of their ends
    if (event.atNs < lastNs) faults.push('times that go back')
    else lastNs = event.atNs
  }
  return faults
}

const NO_EVENTS = ['input', 'issue', 'facts', 'clocks']
const read = (outcome: Outcome) =>
  typeof outcome === 'string' ? 0 : outcome.filter(({ kind }) => !NO_EVENTS.includes(kind)).length

describe.each(SCHEDULER_FIXTURES)('%s', (fixture) => {
  const from = formatOf(fixture)
  const head = plainBytes(fixture)
  const comments = Buffer.from(head)
    .toString('latin1')
    .match(/^(?:#.*\n)*/)![0].length
  const start = Math.max(0, Math.min(comments - 600, head.length - START_BYTES))
  const bytes = head.subarray(start, start + START_BYTES)

  test('every prefix', async () => {
    for (let length = 0; length < bytes.length; length += 19) {
      const prefix = bytes.subarray(0, length)
      const what = `${fixture}, cut to ${length} bytes`
      const outcome = await attempt(prefix, from, what)
      if (length % 3 === 0) {
        expect(await attempt(cut(prefix, 1 + (length % 40)), from, what)).toEqual(outcome)
      }
    }
    expect(read(await attempt(bytes, from, 'whole'))).toBeGreaterThan(0)
  })

  test('bytes changed', async () => {
    const random = randomOf(bytes.length)
    for (let i = 0; i < CHANGES; i++) {
      const damaged = bytes.slice()
      for (let k = i % 3; k >= 0; k--) {
        const at = Math.floor(random() * bytes.length)
        damaged[at]! ^= i % 2 === 0 ? 0xff : 1 << Math.floor(random() * 8)
      }
      const what = `${fixture}, change ${i}`
      const outcome = await attempt(damaged, from, what)
      if (i % PIECES_EVERY === 0) expect(await attempt(cut(damaged, 1 + (i % 70)), from, what)).toEqual(outcome)
    }
  })

  test('digits of times changed: one damaged time costs one event', async () => {
    const whole = read(await attempt(bytes, from, 'whole'))
    const text = Buffer.from(bytes).toString('latin1')
    for (const { index } of [...text.matchAll(/\d(?=\d{2,}(?:\.\d{6}|\d{7} ))/g)].slice(3, 40)) {
      const damaged = bytes.slice()
      damaged[index] = 0x39
      expect(read(await attempt(damaged, from, `${fixture}, digit at ${index}`))).toBeGreaterThanOrEqual(whole - 2) // an operator comes with its tensor
    }
  })

  test('a long line, and one without end', async () => {
    const line = Buffer.from(`${'x-1 [000] 1.0: '.repeat(30_000)}\n`)
    const outcome = await attempt(Buffer.concat([bytes, line, bytes]), from, `${fixture}, a long line`)
    expect(read(outcome)).toBeGreaterThan(0)
    const endless = await attempt(Buffer.concat([bytes, Buffer.alloc(3 << 20, 0x20)]), from, `${fixture}, endless`)
    expect(endless).toContain('expected a line of at most 1048576 bytes')
  })
})

test.each(['ftrace', 'perf-script', 'bpftrace'])('%s: what is no log at all is refused', async (from) => {
  const noise = Uint8Array.from({ length: 100_000 }, (_, i) => (i % 50 === 49 ? 10 : 97 + ((i * 7) % 26)))
  const found = await attempt(noise, from, 'noise')
  expect(found).toMatch(
    from === 'bpftrace' ? /expected lines that begin with "g2p"/ : /expected a line with an event, found 1000 lines/,
  )
})

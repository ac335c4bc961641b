import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from '@jest/globals'
import type { TaskEvent, TokenEvent } from '../../lib/core.ts'
import { analyze } from '../../lib/index.ts'
import { randomOf } from '../../lib/model/random.ts'
import { ServerLines } from '../../lib/pipeline/clocks/server-lines.ts'
import { inLong } from '../long.ts'
import { summariesOf } from '../rpc/exchange.ts'

/** A server's log next to calls of that server that were recorded by `record --attach`. */

const SERVER = fileURLToPath(new URL('../fixtures/server/', import.meta.url))
const textOf = (name: string) => readFileSync(`${SERVER}${name}`, 'utf8')
const LOG = textOf('attached.log')
const CALLS = textOf('attached.g2p')
/** Of CLOCK_BOOTTIME, by the server's own readings of CLOCK_MONOTONIC (README.md of the fixtures); to 1 µs, in which they are written. */
const [START_NS, START_ERROR_NS] = [13_866_440_626_000n, 2000]

const input = (name: string, text: string) => ({ name, source: new TextEncoder().encode(text) })

/** The relation of the second input to the first. */
async function relationOf(first: readonly [string, string], second: readonly [string, string]) {
  const [, summary] = await summariesOf([input(...first), input(...second)])
  return summary!.relation!
}
const withLog = (log: string, calls = CALLS) => relationOf(['at.g2p', calls], ['server.log', log])
const errorOf = (offset: string) => Math.abs(Number(BigInt(offset) - START_NS))

describe('a log and calls of a llama-server', () => {
  test('are on one clock, within the stated error', async () => {
    const { to, how, offset_ns, bound_ns } = await withLog(LOG)
    expect([to, how]).toEqual([
      'BOOTTIME',
      'inferred from lines of the server at 4 places between its calls; 3 of 3 busy times have calls of its tokens',
    ])
    expect(bound_ns).toBeLessThan(1e6)
    expect(errorOf(offset_ns)).toBeLessThanOrEqual(bound_ns! + START_ERROR_NS)
  })

  test('also where the log is given first, and where it is not known when the process began', async () => {
    const known = await withLog(LOG)
    const reversed = await summariesOf([input('server.log', LOG), input('at.g2p', CALLS)])
    const relation = reversed.find((summary) => summary.relation)!.relation!
    expect(relation).toEqual(known)
    // A script may wait before it becomes the server.
    for (const start of ['', 'g2p fact process_start 10000000000000\n'])
      expect(await withLog(LOG, CALLS.replace(/^g2p fact process_start .*\n/m, start))).toEqual(known)
    const after = CALLS.replace(/^g2p fact process_start .*\n/m, 'g2p fact process_start 13866450000000\n')
    expect(await refused(LOG, after)).toBe(OTHER)
  })

  test('is related by what is left of a damaged log, or not at all', async () => {
    const random = randomOf(1)
    const lines = LOG.split('\n')
    let related = 0
    for (let i = 0; i < 40; i++) {
      const left = lines
        .filter(() => random() > 0.1)
        .map((line) => (random() < 0.03 ? line.slice(0, random() * 60) : line))
      const found = await withLog(left.join('\n')).catch((error: Error) => error.message)
      if (typeof found === 'string') expect(found).toMatch(/does not record its clock|format|unknown/)
      else expect(errorOf(found.offset_ns)).toBeLessThanOrEqual(found.bound_ns! + START_ERROR_NS)
      if (typeof found !== 'string') related++
    }
    expect(related).toBeGreaterThan(5)
  })

  test('gives the requests, whatever the sequences of the calls are', async () => {
    // Three texts, of twenty calls each.
    let calls = 0
    const spanOf = (line: string, start: string, cpu: string, tid: string, end: string, tokens: string) => {
      const at = calls++ % 20
      const removal = at === 0 ? `g2p remove ${BigInt(start) - 1n} ${cpu} ${tid} 0 -1 -1\n` : ''
      return `${removal}g2p span ${start} ${cpu} ${tid} ${end} 0 ${at} ${tokens}\n${line}`
    }
    const withSpans = CALLS.replace(/^g2p token (\d+) (\d+) (\d+) (\d+) (\d+) .*$/gm, spanOf)
    const inputs = { log: input('server.log', LOG), calls: input('at.g2p', withSpans) }
    const requestsOf = async (...names: (keyof typeof inputs)[]) =>
      (await analyze(names.map((name) => inputs[name]))).requests!
    const [ofLog, ofCalls] = [await requestsOf('log'), await requestsOf('calls')]
    expect(ofCalls.slowest[0]!.task).toBeNull()
    expect(ofLog.slowest.map(({ task }) => task)).not.toContain(null)
    for (const names of [
      ['calls', 'log'],
      ['log', 'calls'],
    ] as const) {
      const { count, slots, slowest } = await requestsOf(...names)
      expect([count, slots.length]).toEqual([ofLog.count, ofLog.slots.length])
      expect(slowest.map(({ task }) => task)).toEqual(ofLog.slowest.map(({ task }) => task))
    }
  })

  const refused = (log: string, calls?: string) => withLog(log, calls).catch(({ message }: Error) => message)
  const OTHER =
    'server.log: does not record its clock; no known relation to at.g2p (CLOCK_BOOTTIME): its lines about slots are not between these calls: it is the log of another server, or of another start of this one\n' +
    'hint: give the log of that server, with the lines of the time of the recording; of a long one the end: tail -n 100000\n' +
    'hint: or give the offset of its times: --clock server.log=+1.2ms\nhint: or convert them one by one'

  test.each(['v0.5.0-lv3.log', 'v0.7.0-lv4.log', 'v0.5.0-lv4.jsonl'])('of another server: %s', async (other) => {
    expect(await refused(textOf(other))).toBe(OTHER)
    expect(await refused(textOf(other), CALLS.replace(/^g2p fact process_start .*\n/m, ''))).toBe(OTHER)
  })

  test('of few requests without figures, which others could have', async () => {
    expect(await refused(LOG.replaceAll(/^.*print_timing.*\n/gm, ''))).toMatch(
      /\): its lines about slots are between these calls, but so few could be those of another server, too\nhint: record longer/,
    )
  })

  test('of another time, or without requests', async () => {
    const until = LOG.split('\n').filter((line) => line < '0.01.7')
    expect(await refused(until.join('\n'))).toMatch(
      /\): its lines about slots are between these calls, but so few could be those of another server, too\nhint: record longer/,
    )
    const later = LOG.replaceAll(/^0\.0/gm, '9.0')
    expect(await refused(later)).toBe(OTHER)
    expect(await refused(LOG.split('\n').slice(0, 3).join('\n'))).toContain('does not record its clock')
    expect(await refused(LOG, CALLS.replaceAll(/^g2p (?:token|graph) .*\n/gm, ''))).toMatch(
      /: there are no calls, between which its lines about slots could be\nhint: record longer, while requests begin and end\n/,
    )
  })
})

/** A server at random: calls, and lines between them. `startNs`: from its clock to that of the calls. */
function serverOf(random: () => number, startNs: number, log = new ServerLines()) {
  const slots = 1 + Math.floor(random() * 4)
  const [thinkNs, callNs] = [random() ** 3 * 2e8, 10 ** (5 + random() * 3)]
  const calls = new ServerLines()
  const idle: ({ left: number; generated: number } | undefined)[] = Array.from({ length: slots }, () => undefined)
  let nowNs = 1e9
  const after = (ns: number) => (nowNs += ns * (0.5 + random()))
  const line = (what: string, slot: number, values = {}) =>
    log.see({ kind: 'task', what, atNs: Math.floor(nowNs / 1000) * 1000, tid: -1, task: 0, slot, values } as TaskEvent)
  for (let i = 0; i < 300; i++) {
    let tokens = 0
    if (idle.every((work) => work === undefined)) after(thinkNs)
    idle.forEach((work, slot) => {
      if (work) tokens++
      else if (random() < 0.5) {
        const prompt = 1 + Math.floor(random() * 100)
        line('launch', slot)
        after(2e4)
        const generated = 1 + Math.floor(random() * 30)
        idle[slot] = { left: generated, generated }
        tokens += prompt
        line('prompt', slot, { promptTokens: prompt })
        line('timings', slot, { processedTokens: prompt })
      }
    })
    if (tokens === 0) continue
    after(5e4)
    const beginNs = nowNs
    after(callNs * (1 + tokens / 20))
    if (beginNs > 1.5e9 && i < 250)
      calls.see({
        kind: 'token',
        call: i,
        tokens,
        startNs: startNs + beginNs,
        endNs: startNs + nowNs,
        tid: 1,
      } as TokenEvent)
    after(1e5)
    idle.forEach((work, slot) => {
      if (!work || --work.left > 0) return
      if (random() < 0.9) line('timings', slot, { generatedTokens: work.generated })
      line('release', slot)
      idle[slot] = undefined
    })
  }
  return { log, calls }
}

test('servers at random: right within the error that it states; logs of others have no relation', () => {
  const random = randomOf(2)
  let [related, others] = [0, 0]
  let before: ServerLines | undefined
  for (let run = 0; run < 150; run++) {
    const startNs = Math.round((random() - 0.5) * 1e13)
    const { log, calls } = serverOf(random, startNs)
    const found = calls.relationOf(log)
    if (found && 'shiftNs' in found) {
      related++
      expect([run, Math.abs(found.shiftNs - startNs) <= found.boundNs!]).toEqual([run, true])
    }
    const wrong = before && calls.relationOf(before)
    if (wrong && 'shiftNs' in wrong) others++
    before = log
  }
  expect(related).toBeGreaterThan(100)
  expect(others).toBe(0)
})

test('a long log before the recording changes nothing, and takes no time that grows with its square', () => {
  const long = new ServerLines()
  // 30 000 requests, in 8 hours.
  for (let i = 0; i < 30_000; i++) {
    for (const [j, what] of (['launch', 'prompt', 'release'] as const).entries()) {
      const atNs = (i - 30_001) * 1e9 + j * 2e8
      long.see({ kind: 'task', what, atNs, tid: -1, task: i, slot: 0, values: {} } as TaskEvent)
    }
  }
  const [{ log, calls }, { log: both }] = [serverOf(randomOf(3), 5e12), serverOf(randomOf(3), 5e12, long)]
  const found = calls.relationOf(log)
  expect(found).toHaveProperty('shiftNs')
  expect(calls.relationOf(both)).toEqual(found)
})

inLong(test)(
  'a long log in which slots work at all times is searched for some seconds; the end of the log first',
  () => {
    const busy = () => {
      const log = new ServerLines()
      // The next request begins before the last one ends, for 30 days.
      for (let i = 0; i <= 60_000; i++) {
        for (const [what, slot, ms] of [
          ['launch', i % 2, (i * 7919) % 1000],
          ['release', (i + 1) % 2, 5000],
        ] as const) {
          if ((i === 0 && what === 'release') || (i === 60_000 && what === 'launch')) continue
          const atNs = (i - 60_001) * 43e9 + ms * 1e6
          log.see({ kind: 'task', what, atNs, tid: -1, task: i, slot, values: {} } as TaskEvent)
        }
      }
      return log
    }
    const others = new ServerLines()
    for (let call = 0; call < 6000; call++)
      others.see({ kind: 'token', call, tokens: 1, startNs: call * 1e7, endNs: call * 1e7 + 9e6, tid: 1 } as TokenEvent)
    expect(others.relationOf(busy())).toMatchObject({ why: expect.stringContaining('at too many times') })

    const [{ log, calls }, { log: both }] = [serverOf(randomOf(7), 5e12), serverOf(randomOf(7), 5e12, busy())]
    const found = calls.relationOf(log)
    expect(found).toHaveProperty('shiftNs')
    expect(calls.relationOf(both)).toEqual(found)
  },
)

import { describe, expect, test } from '@jest/globals'
import type { InputEvent } from '../../../lib/core.ts'
import { FORMATS } from '../../../lib/index.ts'
import { cut, eventsIn, plainBytes } from '../../line/support.ts'
import { heardFrom, withoutCpus } from './events.ts'
import { scriptOf } from './texts.ts'

/** perf.data, from files and pipes, against what `perf script --ns` says of the same file. */

const CASES = ['mono', 'own-clock', 'zstd', 'pipe', 'switches', 'own-switches', 'lossy']
const bytesOf = (name: string) => plainBytes(`perf-data/${name}.data.gz`)
const inputOf = async (name: string) => (await eventsIn(bytesOf(name))).events[0] as InputEvent

describe.each(CASES)('%s', (name) => {
  const said = scriptOf(`perf-data/${name}.txt.gz`)

  test('every event is what perf script prints, to the nanosecond', async () => {
    const { names, events } = await eventsIn(bytesOf(name))
    expect(said.length).toBeGreaterThan(50)
    expect(withoutCpus(heardFrom(events, names, true))).toEqual(withoutCpus(said))
    expect(events.filter((event) => event.kind === 'issue' && !/^lost (records|switches)$/.test(event.title))).toEqual(
      [],
    )
  })

  test('events come in order of time, and however the file comes they are the same', async () => {
    const whole = await eventsIn(bytesOf(name))
    let last = -Infinity
    for (const event of whole.events) {
      if (!('atNs' in event) || (event.kind === 'thread' && event.what === 'known')) continue
      expect(event.atNs).toBeGreaterThanOrEqual(last)
      last = event.atNs
    }
    for (const size of [700, 60_000]) {
      expect((await eventsIn(cut(bytesOf(name), size))).events).toEqual(whole.events)
    }
  })

  test('is claimed by its own format only', () => {
    const head = bytesOf(name).subarray(0, 4096)
    expect(FORMATS.filter((format) => format.sniff(head)).map((format) => format.name)).toEqual(['perf-data'])
  })
})

test('the head tells clock, kernel, CPUs and tool', async () => {
  const facts = { kernel_release: '6.18.44-fc-v595', perf_version: '6.1.187', cpus: 2 }
  expect(await inputOf('mono')).toMatchObject({ clock: 'MONOTONIC', attributes: facts })
  expect(await inputOf('pipe')).toMatchObject({ clock: 'MONOTONIC', attributes: facts })
  expect(await inputOf('own-clock')).toMatchObject({
    clock: 'unknown',
    attributes: { ...facts, perf_clock: "perf's own" },
  })
  const { blocked_states } = (await inputOf('switches')).attributes
  expect(blocked_states).toMatch(/S means any/)
})

test.each(['mono', 'zstd', 'pipe'])('%s: CLOCK_DATA joins its clock with the wall clock', async (name) => {
  const { events } = await eventsIn(bytesOf(name))
  const clocks = events.filter((event) => event.kind === 'clocks')
  expect(clocks).toHaveLength(1)
  const [own, wall] = clocks[0]!.readings
  expect([own!.clock, wall!.clock]).toEqual(['MONOTONIC', 'REALTIME'])
  const first = events[0] as InputEvent
  expect(Math.abs(Number(own!.ns - first.originNs))).toBeLessThan(1e9) // perf read both just before it began
  expect(new Date(Number(wall!.ns / 1_000_000n)).getUTCFullYear()).toBe(2026)
})

test('processes of threads, known ones and new ones, are told', async () => {
  const { names, events } = await eventsIn(bytesOf('mono'))
  const threads = events.filter((event) => event.kind === 'thread')
  expect(threads.filter(({ what }) => what === 'known').length).toBeGreaterThan(50)
  const renamed = threads.find(({ comm }) => names.text(comm) === 'a b=c [1]: 2-3')!
  const forked = threads.find(({ what, tid }) => what === 'fork' && tid === renamed.tid)!
  expect(forked.tgid).toBe(renamed.tgid)
  expect(forked.tgid).not.toBe(forked.tid)
})

test('what perf lost is told, once', async () => {
  const { events } = await eventsIn(bytesOf('lossy'))
  const lost = events.flatMap((event) =>
    event.kind === 'issue' && event.title === 'lost records' ? [event.detail] : [],
  )
  expect(lost).toHaveLength(LOST.times)
  const counts = lost.map((detail) => /^CPU [01]: ([\d ]+) records? did not fit/.exec(detail)![1]!)
  expect(counts.reduce((sum, count) => sum + Number(count.replaceAll(' ', '')), 0)).toBe(LOST.records)
})

/** As `perf report -D` counts them. */
const LOST = { times: 49, records: 1748 }

describe('damage', () => {
  test('a big-endian file, and one that perf did not finish, are refused with a hint', async () => {
    const swapped = bytesOf('mono').slice()
    swapped.set(new TextEncoder().encode('2ELIFREP'))
    await expect(eventsIn(swapped)).rejects.toThrow(/expected "PERFILE2".*\nhint: convert it where it was recorded/s)
    const unfinished = bytesOf('mono').slice()
    new DataView(unfinished.buffer).setBigUint64(48, 0n, true)
    await expect(eventsIn(unfinished)).rejects.toThrow(/perf was killed/)
  })

  test('a pipe that ends early gives what came before', async () => {
    const bytes = bytesOf('pipe')
    const whole = await eventsIn(bytes)
    const { events } = await eventsIn(bytes.subarray(0, bytes.length - 3001))
    const issues = events.flatMap((event) => (event.kind === 'issue' ? [event.title] : []))
    expect(issues.filter((title) => title !== 'lost switches')).toEqual(['torn record'])
    expect(events.length).toBeGreaterThan(whole.events.length / 2)
  })

  test('a damaged piece of a compressed stream is told, and what came before is kept', async () => {
    const bytes = bytesOf('zstd').slice()
    const at = Buffer.from(bytes).indexOf(Buffer.from([0x28, 0xb5, 0x2f, 0xfd]))
    bytes.fill(0xff, at + 600, at + 900)
    const { events } = await eventsIn(bytes)
    expect(events.some((event) => event.kind === 'issue' && event.title === 'damaged compression')).toBe(true)
    expect(events[0]!.kind).toBe('input')
  })
})

test('of a file that was cut, switches are read as far as it goes; tracepoints need what lies behind them', async () => {
  const part = (name: string, share: number) => bytesOf(name).subarray(0, bytesOf(name).length * share)
  const titles = async (share: number) => {
    const { events } = await eventsIn(part('switches', share))
    expect(events.filter(({ kind }) => kind === 'switch').length).toBeGreaterThan(50)
    return events.flatMap((event) => (event.kind === 'issue' ? [event.title] : []))
  }
  expect(await titles(0.8)).toEqual(['torn file', 'torn record'])
  expect(await titles(0.97)).toEqual(['torn file'])
  expect(await titles(1)).toEqual([])
  await expect(eventsIn(part('mono', 0.5))).rejects.toThrow(/found the end .*\nhint: the file was cut/)
})

test('what is damaged, and not cut, is refused for what it is', async () => {
  for (const name of ['switches', 'mono']) {
    const bytes = bytesOf(name).slice()
    const view = new DataView(bytes.buffer)
    const [records, size] = [view.getBigUint64(40, true), view.getBigUint64(48, true)]
    view.setUint32(Number(records + size) + 4, 0xffff_ffff, true) // the place of the first feature
    await expect(eventsIn(bytes)).rejects.toThrow(/expected a part's place, found \d+$/)
  }
})

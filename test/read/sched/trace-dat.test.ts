import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import type { InputEvent } from '../../../lib/core.ts'
import { convert, FORMATS } from '../../../lib/index.ts'
import { fileSource } from '../../../lib/node.ts'
import { sniffFormat } from '../../../lib/read/index.ts'
import { cut, eventsIn, FIXTURE_NAMES, plainBytes } from '../../line/support.ts'
import { heardFrom, withoutCpus } from './events.ts'
import { reportOf } from './texts.ts'

/** trace.dat, of every version and compression, against what `trace-cmd report -t -R` says of the same file. */

const CASES = ['mono-v6', 'local-v6', 'local-v7-zstd', 'boot-v7', 'boot-v7-zlib', 'instance-v6']
const bytesOf = (name: string) => plainBytes(`trace-dat/${name}.dat.gz`)

describe.each(CASES)('%s', (name) => {
  const said = reportOf(`trace-dat/${name}.txt.gz`)

  test('every event is what trace-cmd reports, to the nanosecond', async () => {
    const { names, events } = await eventsIn(bytesOf(name))
    const clocks = events.find((event) => event.kind === 'clocks')
    const [own, wall] = clocks?.kind === 'clocks' ? clocks.readings.map(({ ns }) => ns) : [0n, 0n]
    const heard = heardFrom(events, names).map((event) => ({ ...event, ns: event.ns + wall! - own! }))
    expect(said.length).toBeGreaterThan(90)
    expect(new Set(said.map(({ what }) => what)).size).toBeGreaterThanOrEqual(3)
    expect(withoutCpus(heard)).toEqual(withoutCpus(said))
    expect(events.filter((event) => event.kind === 'issue' && event.title !== 'lost switches')).toEqual([])
  })

  test('each CPU is in order of time, and however it comes it is the same', async () => {
    const whole = await eventsIn(bytesOf(name))
    const last = new Map<number, number>()
    for (const event of whole.events) {
      if (event.kind !== 'switch' && event.kind !== 'waking') continue
      expect(event.atNs).toBeGreaterThanOrEqual(last.get(event.cpu) ?? -Infinity)
      last.set(event.cpu, event.atNs)
    }
    for (const size of [1000, 4096, 60_000]) {
      expect((await eventsIn(cut(bytesOf(name), size))).events).toEqual(whole.events)
    }
    expect((await eventsIn(new Blob([bytesOf(name) as Uint8Array<ArrayBuffer>]))).events).toEqual(whole.events)
  })

  test('is claimed by its own format only', () => {
    const head = bytesOf(name).subarray(0, 4096)
    expect(FORMATS.filter((format) => format.sniff(head)).map((format) => format.name)).toEqual(['trace-dat'])
  })
})

test('the head tells clock, kernel, CPUs and tool', async () => {
  const inputOf = async (name: string) => (await eventsIn(bytesOf(name))).events[0] as InputEvent
  const facts = { kernel_release: '6.18.44-fc-v595', cpus: 2, trace_cmd_version: '3.1.6 not-a-git-repo' }
  const mono = await inputOf('mono-v6')
  expect(mono).toMatchObject({ format: 'trace-dat', clock: 'MONOTONIC' })
  expect(mono.attributes).toEqual({ version: 6, ...facts, trace_clock: 'mono' })
  const local = await inputOf('local-v7-zstd')
  expect(local).toMatchObject({ clock: 'unknown' })
  expect(local.attributes).toEqual({ version: 7, ...facts, trace_clock: 'local' })
  expect((await inputOf('boot-v7')).clock).toBe('BOOTTIME')
})

test("names and thread ids are the workload's", async () => {
  const { names, events } = await eventsIn(bytesOf('mono-v6'))
  const forked = events.flatMap((event) =>
    event.kind === 'thread' && event.what === 'rename' ? [names.text(event.comm)] : [],
  )
  for (const name of ['ggml-w 0', 'a b=c [1]: 2-3', 'x==> y:4', 'worker/7', 'child: #1', 'true']) {
    expect(forked).toContain(name)
  }
})

test('no switch is missing: who comes is who leaves next', async () => {
  const { events } = await eventsIn(bytesOf('mono-v6'))
  const running = new Map<number, number>()
  let chained = 0
  for (const event of events) {
    if (event.kind !== 'switch') continue
    const before = running.get(event.cpu)
    if (before !== undefined) {
      expect(event.prevTid).toBe(before)
      chained++
    }
    running.set(event.cpu, event.nextTid)
  }
  expect(chained).toBeGreaterThan(1000)
})

/** A page's commit, in the first page of `local-v6`, which is at 0xe000. */
const PAGE = 0xe000

describe('losses', () => {
  const flagged = (flags: number, stored?: number) => {
    const bytes = bytesOf('local-v6').slice()
    const view = new DataView(bytes.buffer)
    const commit = view.getUint32(PAGE + 8, true)
    view.setUint32(PAGE + 8, (commit | flags) >>> 0, true)
    if (stored !== undefined) view.setBigUint64(PAGE + 16 + commit, BigInt(stored), true)
    return bytes
  }
  const issuesOf = async (bytes: Uint8Array) =>
    (await eventsIn(bytes)).events.flatMap((event) =>
      event.kind === 'issue' && event.title !== 'lost switches' ? [`${event.title}: ${event.detail}`] : [],
    )

  test('missed events are told, with their number where the kernel had room to say it', async () => {
    const lost = 'lost records: CPU 0: '
    const rest = ' overwritten before this one'
    expect(await issuesOf(flagged(1 << 31))).toEqual([`${lost}some events${rest}`])
    const last = bytesOf('local-v6')
    const commit = new DataView(last.buffer).getUint32(PAGE + 8, true)
    if (commit + 24 <= 4096) {
      expect(await issuesOf(flagged((1 << 31) | (1 << 30), 123))).toEqual([`${lost}123 events${rest}`])
    }
  })

  test('what the kernel counted is told', async () => {
    const bytes = bytesOf('local-v6').slice()
    const at = Buffer.from(bytes).indexOf('\noverrun: 0')
    bytes[at + 10] = 0x37
    expect((await issuesOf(bytes)).join()).toContain('CPU 0: overrun: 7')
  })

  test('a torn tail loses no more than itself', async () => {
    const bytes = bytesOf('boot-v7')
    const whole = (await eventsIn(bytesOf('local-v6'))).events.length
    const torn = bytesOf('local-v6').subarray(0, PAGE + 8192 + 1000)
    const { events } = await eventsIn(torn)
    expect(events.some((event) => event.kind === 'issue' && event.title === 'torn record')).toBe(true)
    expect(events.length).toBeGreaterThan(whole / 3)
    await expect(eventsIn(bytes.subarray(0, 9000))).rejects.toThrow(/expected .* found the end of the input/)
  })
})

test('a file is read in parts, so that its end can be read first', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'trace-dat-'))
  try {
    const path = join(folder, 'trace.dat')
    writeFileSync(path, bytesOf('boot-v7'))
    const source = fileSource(path)
    expect('range' in source).toBe(true)
    expect((await eventsIn(source)).events).toEqual((await eventsIn(bytesOf('boot-v7'))).events)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('a capture that is alone is converted, on whatever clock it is', async () => {
  const drain = async (name: string) => {
    for await (const _ of convert({ name, source: bytesOf(name) }));
  }
  await drain('local-v6')
  await drain('mono-v6')
})

test('no other format claims it, nor it another', () => {
  for (const fixture of FIXTURE_NAMES) {
    expect(['trace-dat', 'perf-data']).not.toContain(sniffFormat(plainBytes(fixture).subarray(0, 4096))?.name)
  }
})

test('a second buffer is read where the top one has nothing', async () => {
  const bytes = bytesOf('instance-v6').slice()
  const table = Buffer.from(bytes).indexOf('flyrecord\0') + 10
  for (let cpu = 0; cpu < 2; cpu++) new DataView(bytes.buffer).setBigUint64(table + 16 * cpu + 8, 0n, true)
  const { events } = await eventsIn(bytes)
  const switches = (all: typeof events) => all.filter(({ kind }) => kind === 'switch').length
  expect(switches(events)).toBe(switches((await eventsIn(bytesOf('instance-v6'))).events))
})

import { describe, expect, it, test } from '@jest/globals'
import type { TaskEvent } from '../../lib/core.ts'
import { convert, type Input } from '../../lib/index.ts'
import { tryDamaged } from '../line/hostile.ts'
import { cut, eventsIn, plainBytes } from '../line/support.ts'
import { inLong } from '../long.ts'

/** The log of llama-server in all its forms, and damaged. Its contents: test/server/log.test.ts, server-messages.test.ts. */

const bytesOf = (text: string) => new TextEncoder().encode(text)
const textOf = (name: string) => new TextDecoder().decode(plainBytes(`server/${name}`))
const TEXT = textOf('v0.5.0-lv4.log')
const JSONL = textOf('v0.5.0-lv4.jsonl')

/** Steps of tasks, and what else is known of a log. */
async function read(text: string) {
  const { events } = await eventsIn(bytesOf(text))
  const [input] = events
  if (input?.kind !== 'input') throw new Error('expected an input event')
  const steps = events.filter((event): event is TaskEvent => event.kind === 'task')
  const issues = events.flatMap((event) => (event.kind === 'issue' ? [event.code] : []))
  const leftOut = events.flatMap((event) => (event.kind === 'left-out' ? [[event.what, event.count]] : []))
  const facts = Object.assign({}, ...events.map((event) => (event.kind === 'facts' ? event.attributes : {}))) as object
  return { input, steps, issues, leftOut, facts }
}

/** Steps without their times. */
const contents = (steps: readonly TaskEvent[]) =>
  steps.map(({ what, task, slot, values, text }) => [what, task, slot, values, text])
/** Times since the first step. */
const times = ([first, ...rest]: readonly TaskEvent[]) => rest.map(({ atNs }) => atNs - first!.atNs)

/** Adds a collector's columns to each line; `at`: ns since the server's start, of the last line that contains a time. */
function collected(text: string, columns: (at: number) => string): string {
  let at = 0
  const lines = text.trimEnd().split('\n')
  return lines
    .map((line) => {
      const [, minutes, seconds, ms, us] = /^(\d+)\.(\d\d)\.(\d{3})\.(\d{3}) /.exec(line) ?? []
      if (us !== undefined)
        at = (((Number(minutes) * 60 + Number(seconds)) * 1000 + Number(ms)) * 1000 + Number(us)) * 1000
      return `${columns(at)}${line}\n`
    })
    .join('')
}

const withoutTimes = TEXT.replace(/^\d+\.\d\d\.\d{3}\.\d{3} [IWED] /gm, '')
const START_NS = 1_780_000_000_123_456_000n
/** Wall times as Docker has them, 7 µs after the server's own. */
const iso = (at: number) => {
  const ns = START_NS + BigInt(at) + 7000n
  return `${new Date(Number(ns / 1_000_000n)).toISOString().slice(0, 19)}.${String(ns % 1_000_000_000n).padStart(9, '0')}Z`
}

describe('forms of the log', () => {
  it('text counts from the server’s start, on a clock that is not known', async () => {
    const { input, steps, issues, facts } = await read(TEXT)
    expect([input.format, input.clock, input.originNs, issues]).toEqual(['llama-server', 'unknown', 0n, []])
    expect(facts).toMatchObject({ verbosity: 4, n_slots: 4, n_ctx_slot: 512, n_threads: 1, llama_cpp: '1 (0ad4a86)' })
    const launch = steps.find(({ what }) => what === 'launch')!
    const line = /^(\d+)\.(\d\d)\.(\d{3})\.(\d{3}) I slot launch_slot_: id +\d+ \| task \d+ \| processing/m.exec(TEXT)!
    expect(launch.atNs).toBe(Number(`${line[2]}${line[3]}${line[4]}`) * 1000)
  })

  it('JSON lines contain the same', async () => {
    const { input, steps, issues, facts } = await read(JSONL)
    expect([input.clock, issues]).toEqual(['unknown', []])
    expect(facts).toMatchObject({ verbosity: 4, n_slots: 4 })
    const asText = JSONL.replace(
      /^\{"type":"log","time":(\d+),"level":"(\w)\w*","msg":"(.*)\\n"\}$/gm,
      (_, time, level, text) => {
        const us = Number(time)
        const digits = (value: number, length: number) => String(Math.floor(value)).padStart(length, '0')
        const stamp = `${digits(us / 6e7, 1)}.${digits((us / 1e6) % 60, 2)}.${digits((us / 1000) % 1000, 3)}.${digits(us % 1000, 3)}`
        return `${stamp} ${level.toUpperCase()} ${JSON.parse(`"${text}"`)}`
      },
    )
    expect(asText).not.toContain('{"type":"log"')
    expect((await read(asText)).steps).toEqual(steps)
  })

  it('colours and line breaks of Windows do not matter', async () => {
    const coloured = TEXT.replace(
      /^(\d+\.\d\d\.\d{3}\.\d{3}) (.) (.*)$/gm,
      '\x1b[34m$1\x1b[0m \x1b[32m$2 \x1b[0m$3\x1b[0m\r',
    )
    expect((await read(coloured)).steps).toEqual((await read(TEXT)).steps)
  })

  it('no times at all leave the order only, and an issue', async () => {
    const { input, steps, issues } = await read(withoutTimes)
    expect(contents(steps)).toEqual(contents((await read(TEXT)).steps))
    expect([input.clock, issues]).toEqual(['unknown', ['lines-without-time']])
    expect(steps.every(({ atNs }, i) => i === 0 || atNs > steps[i - 1]!.atNs)).toBe(true)
  })
})

describe('collectors of logs', () => {
  const COLUMNS: Readonly<Record<string, (at: number) => string>> = {
    'docker logs --timestamps': (at) => `${iso(at)} `,
    'docker compose': (at) => `llama-1  | ${iso(at)} `,
    Kubernetes: (at) => `${iso(at)} stderr F `,
    'journalctl -o short-iso-precise': (at) => `${iso(at).slice(0, 26)}+00:00 host llama-server[123]: `,
    'a router of llama-server': () => '[42751] ',
    'syslog with a router': (at) => `${iso(at)} t0 llama-server[1686919]: [42751] `,
  }

  it.each(Object.entries(COLUMNS))('%s: the server’s own times are kept', async (_, columns) => {
    const [plain, found] = [await read(TEXT), await read(collected(TEXT, columns))]
    expect(found.steps).toEqual(plain.steps)
    expect(found.issues).toEqual([])
    const isOnWall = found.input.clock === 'REALTIME'
    expect(isOnWall).toBe(columns(0) !== '[42751] ')
    if (isOnWall) expect(Math.abs(Number(found.input.originNs - START_NS))).toBeLessThanOrEqual(7000)
  })

  it('their times serve where the server wrote none', async () => {
    const plain = await read(TEXT)
    const text = collected(TEXT, COLUMNS['docker logs --timestamps']!).replace(/ \d+\.\d\d\.\d{3}\.\d{3} [IWED] /g, ' ')
    const { input, steps, issues } = await read(text)
    expect([input.clock, issues]).toEqual(['REALTIME', []])
    expect(contents(steps)).toEqual(contents(plain.steps))
    expect(times(steps)).toEqual(times(plain.steps))
  })

  it('journald’s default has seconds of no year: its times count from the first line', async () => {
    const month = (at: number) =>
      `Nov 23 04:45:${String(16 + Math.floor(at / 1e9)).padStart(2, '0')} host ollama[123]: `
    const text = collected(TEXT, month).replace(/: \d+\.\d\d\.\d{3}\.\d{3} [IWED] /g, ': ')
    const { input, steps } = await read(text)
    expect([input.clock, input.originNs]).toEqual(['unknown', 0n])
    expect(input.attributes).toMatchObject({ times: expect.stringContaining('1 s') })
    expect(contents(steps)).toEqual(contents((await read(TEXT)).steps))
  })

  it('journalctl -o short-monotonic is on CLOCK_MONOTONIC', async () => {
    const uptime = (at: number) => `[${(1234.5 + at / 1e9).toFixed(6).padStart(12)}] host llama-server[123]: `
    const { input, steps } = await read(collected(TEXT, uptime))
    expect([input.clock, input.originNs]).toEqual(['MONOTONIC', 1_234_500_000_000n])
    expect(steps).toEqual((await read(TEXT)).steps)
  })

  it('Docker’s files contain each line as JSON', async () => {
    const lines = collected(TEXT, (at) => `${iso(at)} `)
      .trimEnd()
      .split('\n')
    const asJson = lines.map((line) => {
      const blank = line.indexOf(' ')
      return JSON.stringify({ log: `${line.slice(blank + 1)}\n`, stream: 'stderr', time: line.slice(0, blank) })
    })
    const { input, steps } = await read(`${asJson.join('\n')}\n`)
    expect(input.clock).toBe('REALTIME')
    expect(steps).toEqual((await read(TEXT)).steps)
  })
})

describe('what else a log contains', () => {
  it('lines of other programs are counted', async () => {
    const others = '[GIN] 2026/11/23 - 04:45:16 | 200 |  1.2s | 127.0.0.1 | POST "/api/chat"\nother: words\n'
    const mixed = TEXT.replace(/^.* launch_slot_: .*$/gm, `$&\n${others.trimEnd()}`)
    const [plain, found] = [await read(TEXT), await read(mixed)]
    expect(found.steps).toEqual(plain.steps)
    const launches = TEXT.match(/ launch_slot_: /g)!.length
    const count = ({ facts }: typeof plain) => (facts as { other_lines: number }).other_lines
    expect(count(found) - count(plain)).toBe(2 * launches)
  })

  it('a second start of the server: its tasks have the same numbers, and are left out', async () => {
    const { steps, issues, leftOut } = await read(`${TEXT}${TEXT}`)
    expect(steps).toEqual((await read(TEXT)).steps)
    expect(issues).toEqual(['server-started-again'])
    expect(leftOut).toEqual([['lines after another start of the server', TEXT.trimEnd().split('\n').length]])
  })

  it('so is one that only the times show', async () => {
    const line = (stamp: string, task: number) =>
      `${stamp} I slot launch_slot_: id  0 | task ${task} | processing task, is_child = 0\n`
    const { steps, issues } = await read(line('0.12.000.000', 70) + line('0.04.000.000', 0))
    expect([contents(steps).length, issues]).toEqual([1, ['server-started-again']])
  })

  it('a small step back of the clock moves no event back', async () => {
    const text = ['0.02.000.000', '0.01.900.000', '0.02.100.000']
      .map((stamp, task) => `${stamp} I slot launch_slot_: id  0 | task ${task} | processing task, is_child = 0\n`)
      .join('')
    expect((await read(text)).steps.map(({ atNs }) => atNs)).toEqual([2e9, 2e9, 2.1e9])
  })

  it('lines of other servers of one router are left out and counted', async () => {
    const other = collected(TEXT, () => '[42752] ')
    const own = collected(TEXT, () => '[42751] ')
      .trimEnd()
      .split('\n')
    const mixed = own.map((line, i) => `${line}\n${other.split('\n')[i]}\n`).join('')
    const { steps, leftOut } = await read(mixed)
    expect(steps).toEqual((await read(TEXT)).steps)
    expect(leftOut).toEqual([['lines of other servers of the router', expect.any(Number)]])
  })

  it('a line of 3 MiB, such as a request with an image, is skipped', async () => {
    const [head, ...rest] = TEXT.split('\n')
    const text = [head, `0.00.100.000 D srv  operator(): request: ${'x'.repeat(3 << 20)}`, ...rest].join('\n')
    const { events } = await eventsIn(cut(bytesOf(text), 1 << 16))
    expect(events.filter(({ kind }) => kind === 'task')).toEqual((await read(TEXT)).steps)
    expect(events.filter(({ kind }) => kind === 'left-out')).toMatchObject([
      { what: 'lines of more than 1 MiB', count: 1 },
    ])
  })

  it('a torn last line states nothing that it may not have stated', async () => {
    const place = TEXT.lastIndexOf('stop processing')
    const torn = TEXT.slice(0, TEXT.indexOf('\n', place) - ', truncated = 0'.length - 1)
    const { steps, issues } = await read(torn)
    expect(issues).toEqual(['torn-record'])
    expect(steps).toEqual((await read(TEXT.slice(0, TEXT.lastIndexOf('\n', place) + 1))).steps)
  })

  it('without tasks there is an issue, and no error', async () => {
    expect((await read('0.00.001.645 I srv  llama_server: initializing ...\n')).issues).toEqual(['no-tasks'])
  })

  it('is named where it is not detected', async () => {
    const text = `${'time=2026-11-23T04:45:16Z level=INFO msg="Ollama"\n'.repeat(200)}${withoutTimes}`
    const input: Input = { name: 'ollama.log', source: bytesOf(text) }
    await expect(convert(input).next()).rejects.toThrow('not a known format')
    const { events } = await eventsIn(bytesOf(text), { from: 'llama-server' })
    expect(events.filter(({ kind }) => kind === 'task')).toHaveLength((await read(TEXT)).steps.length)
  })
})

describe('damaged logs', () => {
  const SMALL = ['v0.5.0-lv5.log', 'v0.7.0-lv4.jsonl'].map((name) => [name, plainBytes(`server/${name}`)] as const)

  inLong(test).each(SMALL)('%s, cut and changed anywhere', (name, bytes) => tryDamaged(name, bytes, 21, 60))
})

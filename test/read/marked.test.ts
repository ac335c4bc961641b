import { gzipSync } from 'node:zlib'
import { expect, test } from '@jest/globals'
import { summarize } from '../../lib/index.ts'
import { cut, FIXTURE_NAMES, OTHER_FIXTURES, plainBytes, SCHEDULER_FIXTURES } from '../line/support.ts'
import { inLong } from '../long.ts'

/** Texts as tools and shells of Windows write them: a byte order mark, UTF-16, line breaks of two characters. */

const FIXTURES = [
  ...['power/nvidia-smi.csv', 'power/real-nvidia-dmon.txt', 'power/tegrastats.txt', 'power/amd-smi.json'],
  ...['power/power.csv', 'power/turbostat.txt', 'llama-bench/tests.csv', 'llama-bench/tests.sql', 'perf-stat/cpus.csv'],
  ...['perf-script/mono.txt', 'ftrace/trace.txt', 'rocprofv3/calls.json', 'tensor-trace-json/tiny.json'],
  ...['otlp/vllm.jsonl', 'profinfer-csv/crlf.csv'],
]

const withBreaks = (text: string) => text.replaceAll('\r\n', '\n').replaceAll('\n', '\r\n')
const utf16le = (text: string) => Buffer.from(`\ufeff${text}`, 'utf16le')
const FORMS: readonly (readonly [name: string, of: (text: string) => Uint8Array])[] = [
  ['lines that end in CR LF', (text) => Buffer.from(withBreaks(text))],
  ['a byte order mark', (text) => Buffer.from(`\ufeff${text}`)],
  ['a byte order mark, compressed', (text) => gzipSync(`\ufeff${text}`)],
  ['UTF-16 of PowerShell', (text) => utf16le(withBreaks(text))],
  ['UTF-16, the high byte first', (text) => utf16le(text).swap16()],
]

/** What is in a log, but for places in it. */
async function contentsOf(bytes: Uint8Array, size = bytes.length) {
  const { issues, ...summary } = await summarize({ name: 'log', source: cut(new Uint8Array(bytes), size) })
  return { ...summary, issues: issues.map(({ code, count }) => [code, count]) }
}

test.each(FIXTURES)('%s: the same with', async (fixture) => {
  const text = new TextDecoder().decode(plainBytes(fixture))
  const expected = await contentsOf(plainBytes(fixture))
  for (const [name, form] of FORMS) expect([name, await contentsOf(form(text))]).toEqual([name, expected])
  expect(await contentsOf(utf16le(text), 1001)).toEqual(expected)
})

/** Of texts of all other formats: those without bytes of zero. */
const TEXTS = [...FIXTURE_NAMES, ...OTHER_FIXTURES, ...SCHEDULER_FIXTURES].filter(
  (fixture) => !FIXTURES.includes(fixture) && !plainBytes(fixture).includes(0),
)

inLong(test)(`${TEXTS.length} other texts with lines that end in CR LF are the same`, async () => {
  expect(TEXTS.length).toBeGreaterThan(40)
  for (const fixture of TEXTS) {
    const text = new TextDecoder().decode(plainBytes(fixture))
    const ended = withBreaks(text)
    expect([fixture, await contentsOf(Buffer.from(ended))]).toEqual([fixture, await contentsOf(plainBytes(fixture))])
  }
})

test('an input of a mark alone is not a log', async () => {
  for (const mark of [[0xef, 0xbb, 0xbf], [0xff, 0xfe], [0xff]])
    await expect(contentsOf(Uint8Array.from(mark))).rejects.toThrow(/^log: /)
})

test('a binary log whose first record begins with the bytes of a mark is no text, and with those of gzip not compressed', async () => {
  const { operators } = await contentsOf(plainBytes('tensor-trace/tiny-v4.bin'))
  expect(operators).toBeGreaterThan(0)
  for (const mark of [
    [0xff, 0xfe],
    [0xfe, 0xff],
    [0x1f, 0x8b],
  ]) {
    const bytes = Uint8Array.from(plainBytes('tensor-trace/tiny-v4.bin'))
    bytes.set(mark)
    expect((await contentsOf(bytes)).operators).toBe(operators)
  }
})

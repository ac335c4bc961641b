import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { isVisible, visible, visibleJson } from '../../lib/cli.ts'
import { inParts, someOf } from '../long.ts'
import { markTexts } from '../report/marked.ts'
import { ROOT } from '../root.ts'
import { filesIn } from '../sources.ts'
import { at, type Outcome, run, useFolder } from './helpers.ts'
import { HOSTILE_LOGS, LEGIBLE, NAME, RAW, SIGNS, textsIn } from './hostile.ts'

/** Names in logs, in files' names and in arguments contain what shows nothing, or changes how other text is shown: no text for people contains it. */

useFolder()

const LOGS = Object.keys(HOSTILE_LOGS)
/** A log in a file of such a name. */
const FILE = `${NAME}.ggtrace`

beforeAll(() => {
  for (const [name, log] of Object.entries(HOSTILE_LOGS)) writeFileSync(at(name), log())
  writeFileSync(at(FILE), HOSTILE_LOGS['calls.ggtrace']!())
  writeFileSync(at(`${NAME}.txt`), `${NAME}\n`)
})

test('one place knows these characters, and texts are written in few places', () => {
  const filesWith = (what: RegExp, rooms: readonly string[]) =>
    rooms.flatMap((room) => filesIn(room)).filter((path) => what.test(readFileSync(join(ROOT, path), 'utf8')))
  expect(filesWith(/\\u202[a-e]|\\u200[b-f]|\\u061c|\\p\{Cc/, ['lib', 'bin'])).toEqual(['lib/bytes/visible.ts'])
  expect(filesWith(/\bconsole\.|(?:stdout|stderr|stream)\.write\(|writeSync\([12]\b/, ['bin']).sort()).toEqual([
    'bin/commands/export.ts', // how many logs are done
    'bin/ggml2perfetto-mcp.ts', // the help
    'bin/ggml2perfetto.ts', // the version
    'bin/signals.ts', // what was interrupted
    'bin/terminal.ts',
  ])
})

describe('the function', () => {
  const all = Array.from({ length: 0x110000 }, (_, code) => code)

  test('changes what shows nothing, and no letter, sign, number or blank of any script', () => {
    const hidden = (code: number) => RAW.test(String.fromCodePoint(code)) || (code >= 0xd800 && code <= 0xdfff)
    expect(all.filter((code) => hidden(code) && isVisible(`a${String.fromCodePoint(code)}b`))).toEqual([])
    const shows = /[\p{L}\p{N}\p{P}\p{S}\p{Zs}\p{Mn}\p{Mc}\p{Me}]/u
    const changed = all.filter((code) => {
      const text = String.fromCodePoint(code)
      return shows.test(text) && !/\p{Default_Ignorable_Code_Point}/u.test(text) && visible(text) !== text
    })
    expect(changed).toEqual([])
    expect(visible('a\tb\nc')).toBe('a\tb\nc')
  })

  test.each([
    ['\\x1b[31m', '\x1b[31m'],
    ['a\\u202eb', 'a\u202eb'],
    ['\\u{e0041}', '\u{e0041}'],
    ['\\ud800', '\ud800'],
    ['☀️ ❤️', '☀️ ❤️'],
    ['👨\\u200d👩', '👨\u200d👩'],
    ['a\\ufe0f', 'a\ufe0f'],
    ['☀️\\ufe0f', '☀️\ufe0f'],
  ])('%s', (shown, text) => expect(visible(text)).toBe(shown))

  test('JSON has the same values', () => {
    const text = all.map((code) => String.fromCodePoint(code)).join('')
    const json = visibleJson(JSON.stringify({ [text]: text }))
    expect([RAW.test(json), JSON.parse(json)]).toEqual([false, { [text]: text }])
  })
})

/** What a command printed, and the files that it wrote in `out/`. */
function textOf(args: readonly string[], columns?: number): { readonly text: string; readonly outcome: Outcome } {
  for (const name of ['out.svg', 'out.dot', 'out.html', 'out.md']) rmSync(at(name), { force: true })
  const outcome = run(args, { columns, env: { NO_COLOR: '1' } })
  const output = args[args.indexOf('-o') + 1]!
  const isText = args.includes('-o') && /\.(?:svg|dot|html|md)$/.test(output) && existsSync(at(output))
  return { text: outcome.stdout + outcome.stderr + (isText ? readFileSync(at(output), 'utf8') : ''), outcome }
}

/** Commands about a log that print text, or write it into a file. */
const aboutLog = (log: string): readonly (readonly string[])[] => [
  ['info', log],
  ['stats', log],
  ['stats', log, '--full'],
  ['stats', log, '--full', '--calls', '--experts'],
  ['stats', log, '--by', 'role,op,layer,type,backend'],
  ['stats', log, '--markdown'],
  ['stats', log, '--csv'],
  ['why', log],
  ['why', log, '--checks'],
  ['what-if', log, '--threads', '2'],
  ['compare', log, '--with', 'calls.ggtrace'],
  ['compare', log, '--with', 'calls.ggtrace', '--markdown', '--name', NAME, '--name', 'b'],
  ['report', log, '-o', 'out.html'],
  ['report', log, '-o', 'out.html', '--title', NAME],
  ['report', log, '--to', 'issue', '-o', 'out.md'],
  ['report', log, '--to', 'issue', '-o', '-'],
  ['dag', log],
  ['dag', log, '-o', '-'],
  ['dag', log, '-o', 'out.svg'],
  ['dag', log, '-o', 'out.dot'],
  ['dag', log, '-o', 'out.svg', '--collapse', 'off'],
  ['dag', '--diff', log, 'all.ggtrace'],
  ['dag', '--diff', log, 'calls.ggtrace', '-o', 'out.svg'],
  ['query', log, 'select * from slice'],
  ['query', log, 'select * from args', '--format', 'csv'],
  ['query', log, `select 1 as "${SIGNS}"`, '--format', 'csv'],
  ['query', log, `select 1 as "${SIGNS}"`],
  ['query', log, NAME],
  ['check', log],
  [log, '-o', 'out.pftrace', '--force'],
  ['export', log, '-o', 'out-dataset'],
  ['dag', log, '--layers', NAME],
  ['stats', log, '--by', NAME],
  ['stats', log, `--${NAME}`],
  ['stats', log, '--op-table', NAME],
]

/** The same of values, as JSON. */
const asJson = (log: string): readonly (readonly string[])[] => [
  ['info', log, '--json'],
  ['stats', log, '--json'],
  ['why', log, '--json'],
  ['compare', log, '--with', 'calls.ggtrace', '--json'],
  ['dag', log, '--json'],
  ['what-if', log, '--threads', '2', '--json'],
  ['query', log, 'select * from slice', '--format', 'json'],
]

const ERRORS: readonly (readonly string[])[] = [
  [`no ${NAME}`],
  ['stats', `no ${NAME}`],
  ['stats', `${NAME}.txt`],
  ['compare', FILE, '--with', `no ${NAME}`],
  [FILE, '-o', `no/${NAME}.pftrace`],
  ['report', FILE, '-o', `${NAME}.txt`],
  ['open', `no ${NAME}`],
  ['record', `./${NAME}`],
  ['record', '--', NAME],
  ['check', `${NAME}.txt`],
  ['export', `no ${NAME}`, '-o', 'out-dataset'],
  ['what-if', FILE, '--type', NAME],
  ['help', NAME],
  [NAME],
]

const titled = (args: readonly string[]) => [visible(args.join(' ')), args] as const
const CASES = [...LOGS.flatMap(aboutLog), ...aboutLog(FILE), ...ERRORS]

describe('a text', () => {
  inParts(test).each(someOf(CASES.map(titled), 3))('%s: shows them as escapes', (_, args) => {
    for (const columns of [undefined, 90]) {
      const { text } = textOf(args, columns)
      expect(text.length).toBeGreaterThan(10)
      expect([RAW.exec(text)?.[0], text.slice(0, RAW.exec(text)?.index).slice(-100)]).toEqual([
        undefined,
        expect.anything(),
      ])
    }
  })

  test('shows them, and what is legible remains', () => {
    const { stdout } = run([
      'query',
      'calls.ggtrace',
      "select distinct name from slice where category = 'operator' limit 1",
    ])
    expect(stdout).toContain(LEGIBLE)
    expect(stdout).toContain(visible(NAME).replaceAll('\t', '\\t'))
    expect(run(['report', 'calls.ggtrace', '-o', 'legible.html']).code).toBe(0)
    expect(readFileSync(at('legible.html'), 'utf8')).toContain(LEGIBLE)
    expect(run(['dag', 'calls.ggtrace', '-o', '-']).stdout).toContain(LEGIBLE)
  })

  test('columns of tables are aligned', () => {
    const { stdout } = run(['query', 'calls.ggtrace', `select '${SIGNS}' as a, 1 as b union all select 'x', 2`])
    const [head, line, ...rows] = stdout.trimEnd().split('\n')
    expect([head, ...rows.slice(0, 2)].map((row) => row!.length)).toEqual([line!.length, line!.length, line!.length])
  })
})

describe('a document of JSON', () => {
  const cases = [...LOGS, FILE].flatMap(asJson).map(titled)
  inParts(test).each(someOf(cases, 3, 1))('%s: has escapes of JSON, and exact values', (_, args) => {
    const { stdout, code } = textOf(args).outcome
    expect(RAW.exec(stdout)).toBe(null)
    if (code !== 0) return
    const hasNames = textsIn(JSON.parse(stdout)).some((text) => text.includes(NAME))
    const [command, log] = args
    expect(hasNames || ['why', 'what-if', 'compare'].includes(command!) || log === 'placed.ggtrace').toBe(true)
  })
})

/** Logs whose Analyses have many sections. */
const KINDS = [
  ...[
    'examples/moe.csv',
    'examples/qwen2.ggtrace.gz',
    'test/printed/logs/server.ggtrace.gz',
    'test/gpu/logs/h100.ggtrace.gz',
  ],
  ...['test/numa/distribute.ggtrace.gz', 'test/printed/logs/before.ggtrace.gz'],
  ...['nsys/one-gpu.sqlite.gz', 'llama-bench/tests.json', 'server/v0.7.0-lv4.log', 'server/drafts.log'].map(
    (name) => `test/fixtures/${name}`,
  ),
  ...['blas-log/cublas.log', 'onednn/v3.7.log', 'llama-log/backends.log', 'ncu/details.csv'].map(
    (name) => `test/fixtures/${name}`,
  ),
  ...['memory-samples/nano.ggtrace.gz'].map((name) => `test/fixtures/${name}`),
]

inParts(test).each(someOf(KINDS, 8))(
  '%s: an Analysis with them in all of its texts is shown without them',
  async (path) => {
    const jsonOf = (...more: string[]) => run(['stats', join(ROOT, path), '--json', ...more]).stdout
    const document = JSON.parse(jsonOf('--series', 'calls,requests') || jsonOf('--series', 'calls') || jsonOf())
    expect(await markTexts(document, NAME)).toBeGreaterThan(5)
    writeFileSync(at('marked.json'), JSON.stringify(document))
    const all = [
      ...[[], ['--full'], ['--markdown'], ['--full', '--calls'], ['--csv'], ['--by', 'request']].map((more) => [
        'stats',
        'marked.json',
        ...more,
      ]),
      ...[
        ['why', 'marked.json', '--checks'],
        ['compare', 'marked.json', '--with', 'marked.json'],
      ],
      ['report', 'marked.json', '-o', 'out.html'],
      ['report', 'marked.json', '--to', 'issue', '-o', '-'],
    ]
    for (const args of all) expect([args, RAW.exec(textOf(args).text)?.[0]]).toEqual([args, undefined])
  },
)

test('traces contain names as they are', () => {
  expect(run(['calls.ggtrace', '-o', 'exact.pftrace']).code).toBe(0)
  expect(readFileSync(at('exact.pftrace')).includes(Buffer.from(NAME))).toBe(true)
  expect(run(['calls.ggtrace', '-o', 'exact.json']).code).toBe(0)
  expect(textsIn(JSON.parse(readFileSync(at('exact.json'), 'utf8'))).some((text) => text.includes(NAME))).toBe(true)
})

test('files of these names were written only where that was asked for', () => {
  expect(
    readdirSync(at('.'))
      .filter((name) => name.includes('evil'))
      .sort(),
  ).toEqual([FILE, `${NAME}.txt`])
})

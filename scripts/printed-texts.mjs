/**
 * Writes what the commands print about the stored logs, their help, and their answers to mistakes, into test/printed/texts.txt:
 *   npm run texts
 * The file is to be read, by somebody who does not know the program; a change of it shows each sentence that a change of the code changes.
 * With `-`, it goes to standard output. A line that differs from an earlier one in numbers and names only is left out: `…`.
 */
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { commandFolder, printer } from './printed.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const STORED = join(root, 'test/printed/texts.txt')
process.chdir(root)
const folder = commandFolder()
const printed = await printer(join(root, 'dist'), folder)

const isLog = (path) => !/README|SOURCES|answers|\.(md|m?js|ts|py|c|html)$/.test(path)
const logsIn = (place) =>
  readdirSync(place, { recursive: true, encoding: 'utf8' })
    .map((name) => join(place, name))
    .filter((path) => statSync(path).isFile() && isLog(path))
    .sort()
const FIXTURES = [
  'examples',
  'test/recorded',
  'test/printed/logs',
  'test/gpu/logs',
  'test/numa',
  'test/fixtures',
].flatMap(logsIn)
/** The first of each folder. */
const FIRST = FIXTURES.filter((path, i) => dirname(path) !== dirname(FIXTURES[i - 1] ?? ''))

const MOE = 'examples/moe.csv'
const QWEN = 'examples/qwen2.ggtrace.gz'
const SESSION = ['test/fixtures/session/run.ggtrace.gz', 'test/fixtures/session/run.sched.dat.gz']
const SERVER = 'test/printed/logs/server.ggtrace.gz'
const SERVER_LOG = 'test/fixtures/server/v0.7.0-lv4.log'
const [BEFORE, AFTER] = ['test/printed/logs/before.ggtrace.gz', 'test/printed/logs/after.ggtrace.gz']
const BENCH = 'test/fixtures/llama-bench/tests.json'
const GPU = 'test/gpu/logs/h100.ggtrace.gz'
const [H100, NSYS] = ['test/fixtures/chrome-json/h100.json.gz', 'test/fixtures/nsys/one-gpu.sqlite.gz']
/** Logs of each kind, which have many sections. */
const KINDS = [
  ...[
    MOE,
    QWEN,
    SERVER,
    GPU,
    H100,
    NSYS,
    BENCH,
    'test/numa/distribute.ggtrace.gz',
    'test/fixtures/ggtrace/lossy.ggtrace',
  ],
  ...['server/v0.7.0-lv4.log', 'server/drafts.log', 'blas-log/cublas.log', 'onednn/v3.7.log', 'llama-log/backends.log'],
  ...[
    'memory-samples/nano.ggtrace.gz',
    'power/tegrastats.txt',
    'ncu/details.csv',
    'perf-stat/program.csv',
    'otlp/vllm.jsonl',
  ],
].map((path) => (path.includes('/') && !/^(examples|test)\//.test(path) ? `test/fixtures/${path}` : path))

/** What is printed, by the command: the arguments of each run. */
const RUNS = {
  why: [
    ...FIXTURES.map((path) => [path]),
    ...[SESSION, [BEFORE, 'test/printed/logs/before.sched.dat.gz'], [SERVER, SERVER_LOG], [BENCH, QWEN]],
    ...[
      [BEFORE, AFTER],
      [MOE, '--checks'],
      [SERVER, '--request', '1'],
      [SERVER_LOG, '--request', '2'],
      [SERVER, '--task', '99'],
    ],
  ],
  stats: [
    ...[...FIRST, ...KINDS].map((path) => [path]),
    ...KINDS.map((path) => [path, '--full']),
    ...[
      [MOE, '--by', 'layer'],
      [SERVER, '--by', 'request'],
      [SERVER_LOG, '--by', 'slot'],
      [QWEN, '--calls'],
      [MOE, '--experts'],
    ],
    ...[
      [MOE, '--markdown'],
      [BEFORE, AFTER],
      [...SESSION, '--full'],
    ],
  ],
  info: FIRST.map((path) => [path]),
  convert: FIRST.map((path) => [path, '-o', `${folder}/run.pftrace`]),
  check: [['run.pftrace'], [MOE]].map(([path]) => [path.includes('/') ? path : `${folder}/${path}`]),
  'what-if': [
    ...[
      [MOE],
      [QWEN],
      [SERVER],
      [H100],
      [BENCH],
      [MOE, '--threads', '2'],
      [MOE, '--threads', '4'],
      [QWEN, '--threads', '1'],
    ],
    ...[
      [QWEN, '--context', '4096'],
      [MOE, '--experts', '1'],
      [MOE, '--type', 'q8_0'],
      [QWEN, '--batch', '4'],
    ],
    ...[
      [BEFORE, '--without', 'preempted'],
      [BEFORE, '--without', 'faults,first-call'],
      [BEFORE, '--threads', '1', '--with', AFTER],
    ],
  ],
  compare: [
    ...[
      [BEFORE, '--with', AFTER],
      [MOE, '--with', MOE],
      [MOE, '--with', QWEN],
      [BENCH, '--with', BENCH],
      [SERVER, '--with', SERVER],
    ],
    ...[
      [BEFORE, AFTER, '--with', AFTER, BEFORE],
      [BEFORE, '--with', AFTER, '--name', 'old', '--name', 'new', '--fail-above', '5%'],
    ],
  ],
  report: [MOE, QWEN, SERVER, H100].map((path) => [path, '-o', `${folder}/report.html`]),
  'report --to issue': [MOE, QWEN, SERVER, BENCH, H100].map((path) => [path, '-o', '-']),
  dag: [
    [MOE],
    [QWEN],
    [GPU],
    [MOE, '--call', '0', '--layers', '0', '--top', '3'],
    ['--diff', 'examples/llama.ggtrace.gz', QWEN],
    [BENCH],
    [H100],
  ],
  query: [
    [MOE, 'select count(*) from slice'],
    [MOE, 'select nothing'],
    [MOE, 'why is it slow'],
    [MOE, '--summary'],
  ],
}

const COMMANDS = [
  ...['record', 'convert', 'open', 'stats', 'why', 'what-if', 'compare', 'report', 'dag', 'query', 'export', 'doctor'],
  ...['check', 'peaks', 'nvtx'],
]
/** Lines that somebody types who does not know the program, or mistypes. */
const MISTAKES = [
  ...[
    [],
    ['no-such.log'],
    ['explain', MOE],
    ['stats'],
    ['why'],
    ['stats', 'no-such.log'],
    ['why', 'README.md'],
    ['stats', 'lib'],
  ],
  ...COMMANDS.map((command) => [
    command,
    ...(command === 'nvtx' || command === 'doctor' ? [] : [MOE]),
    '--gpu-layers',
    '10',
  ]),
  ...[
    [MOE, '--tokens', '5..3'],
    [MOE, '--tokens', '90'],
    [MOE, '--detail', 'all'],
    [MOE, '-o', MOE],
    [MOE, '-o', '/no/such/x.pftrace'],
  ],
  ...[
    ['stats', MOE, '--by', 'layers'],
    ['stats', MOE, '--json', '--csv'],
    ['stats', MOE, '--top', 'x'],
    ['stats', MOE, MOE],
  ],
  ...[
    ['why', MOE, '--request', '1'],
    ['what-if', MOE, '--threads'],
    ['what-if', MOE, '--threads', 'x'],
    ['what-if', MOE, '--type', 'q9'],
  ],
  ...[
    ['what-if', MOE, '--context', '0'],
    ['what-if', MOE, '--without', 'noise'],
    ['compare', MOE],
    ['compare', MOE, '--with', 'no-such.log'],
  ],
  ...[
    ['dag', MOE, '--call', '99'],
    ['dag', MOE, '--layers', '99'],
    ['report', MOE, '--to', 'pdf'],
    ['query', MOE],
    ['check', 'no-such.pftrace'],
  ],
  ...[
    ['record'],
    ['record', 'no-such-program'],
    ['record', '--level', 'all', '--', 'true'],
    ['record', '--sweep', 't=1,2', '--', 'true'],
  ],
  ...[
    ['record', '--attach', 'x'],
    ['record', '--ring', '--', 'true'],
    ['export', MOE],
    ['open', 'no-such.log'],
    ['peaks', '--threads', 'x'],
  ],
  ...[
    ['peaks', 'no-such.log'],
    ['help', 'no-such-topic'],
    ['stats', MOE, '--threads', '2'],
    ['why', MOE, '--full'],
    ['why', MOE, 'extra'],
  ],
]

/** The text of a page, without pictures. */
function pageText(page) {
  return page
    .replaceAll(/<(style|script|svg)\b[\s\S]*?<\/\1>/g, '')
    .replaceAll(/<\/t[dh]>/g, '  ')
    .replaceAll(/<(?:br|\/(?:p|li|tr|h\d|div|summary|caption|dt|dd|button|a))\b[^>]*>/g, '\n')
    .replaceAll(/<[^>]*>/g, '')
    .replaceAll(/&(lt|gt|quot|amp|#39);/g, (_, name) => ({ lt: '<', gt: '>', quot: '"', amp: '&', '#39': "'" })[name])
    .replaceAll(/\n\s*\n+/g, '\n')
    .trim()
}

/** Sections of the file: a title, and the lines of each command with what it prints. */
async function* sections() {
  for (const [command, runs] of Object.entries(RUNS)) {
    for (const args of runs) {
      const line = [
        ...command.split(' ').slice(0, 1),
        ...args.slice(0, -2),
        ...command.split(' ').slice(1),
        ...args.slice(-2),
      ]
      const said = await printed(
        command === 'report --to issue' ? ['report', args[0], '--to', 'issue', ...args.slice(1)] : line,
      )
      yield [line, command === 'report' ? `${said}\n${pageText(readFileSync(args.at(-1), 'utf8'))}` : said]
    }
  }
  for (const args of [['--help'], ['help'], ...COMMANDS.map((name) => ['help', name])])
    yield [args, await printed(args)]
  for (const args of MISTAKES) yield [args, await printed(args)]
}

const SIZE = /\d[\d.,]*(?: \d{3})*(?: ?(?:ns|µs|ms|s|B|KiB|MiB|GiB|KB|MB|GB|%)\b)?/g
/** What two lines have in common that differ in numbers and names only. */
const shapeOf = (line) =>
  line
    .replaceAll(/(?:examples|test)\/[\w./-]+/g, '@')
    .replaceAll(SIZE, '#')
    .replaceAll(
      /\b(?:decode|prefill|attention|MoE|norm|embedding|FFN|other|LM head|[A-Z][A-Z0-9_]{2,}|\w+_\w+)\b/g,
      '@',
    )
    .replaceAll(/(?:@ #, )+(?=@ #)/g, '')
    .replaceAll(/[█▏▎▍▌▋▊▉·]+/g, '')
    .replaceAll(/\s+/g, ' ')
/** Rows of a table that are written. */
const ROWS = 3
const isRow = (line) => /\S {2,}\S.* {2,}\S/.test(line)

const known = new Set()
/** The lines of a text, without those that are known, and most of the rows of tables. */
function newLines(text) {
  const lines = []
  let rows = 0
  for (const line of text.split('\n')) {
    rows = isRow(line) ? rows + 1 : 0
    const shape = shapeOf(line)
    const isNew = line !== '' && rows <= ROWS && !known.has(shape)
    known.add(shape)
    const kept = isNew ? line : line === '' ? '' : '…'
    if (isNew || (kept !== lines.at(-1) && !(kept === '' && lines.at(-1) === '…'))) lines.push(kept)
  }
  return lines.filter((line) => line === '…' || line === '').length === lines.length ? [] : lines
}

const quoted = (word) => (/[\s*]|^$/.test(word) ? `'${word}'` : word.replace(`${folder}/`, ''))
const blocks = []
for await (const [args, text] of sections()) {
  const lines = newLines(text)
  if (lines.length > 0) blocks.push(`$ ggml2perfetto ${args.map(quoted).join(' ')}\n${lines.join('\n').trim()}\n`)
}
const text = blocks.join('\n')
if (process.argv.includes('-')) process.stdout.write(text)
else writeFileSync(STORED, text)

import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { useFolder } from '../cli/helpers.ts'
import { inParts, someOf } from '../long.ts'
import { ROOT } from '../root.ts'
import { linesOfPage, linesOfProgram, PAGES, unfenced } from './collect.ts'
import { makeFiles } from './files.ts'
import { callsIn, mistakeIn } from './parse.ts'
import { firstLineOf, lineTest, missing, outputOf } from './workplace.ts'

/**
 * Each command line that the docs print, and each in the texts of the program (examples of the help, hints, advice, last lines), is executed, on
 * files and with programs of the names that it has. In one test file, because it takes long to make these files.
 */

useFolder()
beforeAll(makeFiles)

/** Lines that are not executed here: why. */
const SKIPPED: readonly (readonly [line: RegExp, reason: string])[] = [
  [/^(?:sudo )?(?:nsys|ncu) /, 'a tool of NVIDIA, which needs a GPU'],
  [/^nvidia-smi |^kill %1$/, 'needs a GPU'],
  [/^docker /, 'needs Docker'],
  [/^(?:vllm|aiperf|genai-perf|python -m sglang)/, 'a program of others, with a server'],
  [/^(?:clickhouse|duckdb|trace_processor_shell) /, 'a program of others; its SQL is run by test/fleet and docs-sql'],
  [/^npm (?:install|publish)|^git |^\.ci\//, 'changes a registry or this machine'],
  [
    /^npm run bench|^npm (?:run )?test|^npm run (?:demo|build)|^node scripts\/(?:compatibility|headline)/,
    'takes minutes',
  ],
  [/tracing_on|trace_marker|trace_clock|^for event|kernel\/tracing/, 'changes the tracing of this kernel'],
  [/^sudo (?:install|sed)|\/etc\//, 'changes this machine'],
  [/^lib=|^mkdir -p logs/, 'a step of the lines for Docker'],
  [/pidof|--attach <process id>/, 'needs a running llama-server: test/native/attach.long.test.ts'],
  [/^ggml2perfetto run\.ggtrace run\.sqlite/, 'needs a log and a report of one run, with a GPU'],
  [/perf mem record/, 'needs a processor whose loads perf samples'],
]

/** What placeholders of the docs are here. */
const OF_DOCS: readonly (readonly [placeholder: RegExp, text: string])[] = [
  [/run\.ggtrace(?= (?:perf\.data |--bundle |sched\.g2p))/, 'now.ggtrace'],
  [/run\.ggtrace(?= run\.faults\.data)/, 'nano.ggtrace'],
  [/(?<=client\.ggtrace )server\.ggtrace/, 'rpc.ggtrace'],
  [/compare --runs \d+|compare(?= -- ['"])/, 'compare --runs 1'],
  [/record --sweep \S+/, '$& --rounds 1'],
  [/--attach <process id>(?: \[(.*)\])?/, '--attach 1 $1'],
  [
    /(?<=open )at\.g2p at\.sched\.dat server\.log/,
    'test/fixtures/server/attached.g2p test/fixtures/server/attached.log',
  ],
  [/profile_export\.jsonl(?= server\.ggtrace)/, 'client.jsonl'],
  [/sched\.g2p$/, 'test/fixtures/bpftrace/sched.txt --clock test/fixtures/bpftrace/sched.txt=+0s'],
  [/-c '[^']*'(?= native)/, '-c /bin/true'],
  [/^sudo (?=bpftrace -f)/, 'timeout -s INT 5 '],
  [/compare logs (?=--markdown|--fail)/, 'compare compared '],
  [/--call 7/, '--call 3'],
  [/--task \d+/, '--task 5'],
  [/dag run\.ggtrace --layers 3/, 'dag llama.ggtrace --layers 3'],
  [/<trace, logs, or dataset> "<SQL>"|<trace or log> "<SQL>"/, 'run.ggtrace "select name from slice limit 1"'],
  [/compare <logs…> --with <logs…>/, 'compare old/ --with new/'],
  [/<program> …|<program>( \[arguments\])?/, 'llama-cli -m model.gguf'],
  [/<trace or logs>|<trace>/, 'run.pftrace'],
  [/what-if <logs…>/, 'what-if run.ggtrace --context 200'],
  [/^(ggml2perfetto peaks) (?:run\.ggtrace|<log>)/, '$1 now.ggtrace'],
  [/<logs?…?>/, 'run.ggtrace'],
  [/--types (?:…|<types>|‹named›‹options›)/, '--types q8_0'],
  [/(?<= --types \S+) --threads 2/, ' --threads 1'], // two spin for each other at barriers, on a busy machine for a minute
  [/<topic>|<command>/, 'stats'],
  // That of PATH, and the model that it names: it takes longest, and finds both in test/cli/doctor.long.test.ts.
  [
    /^(ggml2perfetto doctor)(?: build\/bin(?:\/llama-bench)?| \[program\])?(?: -m model\.gguf)?/,
    '$1 --rounds 1 -m model.gguf',
  ],
  [/--clock …/, '--clock smi.csv=UTC'],
  [/^ggml2perfetto open …$/, 'ggml2perfetto open run.ggtrace'],
  [/^(ggml2perfetto open \S+) --no-browser$/, '$1'], // the browser there fetches the trace
  [/record --$/, 'record -- llama-cli'],
  [/-- …$/, '-- llama-cli'],
  [/(llama-\w+) …/, '$1'],
  [/model\.gguf …/, 'model.gguf'],
  [/setpriv --reuid=\S+ --regid=\S+ --init-groups /, ''],
  [/\/var\/log\/llama(?:-server)?\/|(?<= )\/logs\//, '$PWD/logs/'],
  [/Europe\/Berlin/, 'UTC'],
  [/^ggml2perfetto (query|compare|report|open|export|record)$/, 'ggml2perfetto $1 --help'],
  [/^ggml2perfetto (stats|why|stats --contents)$/, 'ggml2perfetto $1 run.ggtrace'],
]

const inDocs = (line: string) =>
  OF_DOCS.reduce((text, [placeholder, value]) => text.replaceAll(new RegExp(placeholder, 'g'), value), line)

/** Of the lines, `npm test` executes one of so many, and `npm run test:long` the others. */
const PARTS = 8
let nth = 0

/** Why a line is not executed here, if it is not. */
const reasonOf = (line: string) => SKIPPED.find(([pattern]) => pattern.test(line))?.[1]

/** What the parser finds in lines that are as they are here: all of them, as only some are executed. */
async function mistakesIn(lines: readonly string[]): Promise<string[]> {
  const mistakes: string[] = []
  for (const line of lines.filter((line) => missing(line) === undefined))
    for (const call of callsIn(line)) {
      const mistake = await mistakeIn(call)
      if (mistake !== undefined) mistakes.push(`${line}\n${mistake}`)
    }
  return mistakes
}

describe.each(PAGES)('%s', (path) => {
  const lines = linesOfPage(path)
  test('has no command line outside of its blocks', () => expect(unfenced(path)).toEqual([]))
  test('has no command line that is wrong', async () => expect(await mistakesIn(lines.map(inDocs))).toEqual([]))

  for (const line of lines) lineTest(line, inDocs(line), { reason: reasonOf(line), isLong: nth++ % PARTS > 0 })
})

/** The anchors of a page's headings, as GitHub makes them. */
const anchorsOf = (text: string) =>
  [...text.matchAll(/^#+ (.+)$/gm)].map(([, title]) =>
    title!
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  )

test.each(PAGES)('links of %s lead somewhere', (path) => {
  const text = readFileSync(join(ROOT, path), 'utf8').replaceAll(/^( *)```[\s\S]*?^ *```$/gm, '')
  const broken = [...text.matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g)].filter(([, target, anchor]) => {
    const page = join(ROOT, target === '' ? path : join(dirname(path), target!))
    if (!existsSync(page)) return true
    return anchor !== undefined && !anchorsOf(readFileSync(page, 'utf8')).includes(anchor)
  })
  expect(broken.map(([link]) => link)).toEqual([])
})

test('each reason to skip a line has one', () => {
  const lines = PAGES.flatMap(linesOfPage)
  expect(SKIPPED.filter(([pattern]) => !lines.some((line) => pattern.test(line)))).toEqual([])
})

/** What the program computes for a line, and what its placeholders are: as it is here. */
const OF_PROGRAM: readonly (readonly [placeholder: RegExp, text: string])[] = [
  [/open ‹name› --tokens/, 'open run.ggtrace --tokens'],
  [/^ggml2perfetto peaks‹.*?›/, 'ggml2perfetto peaks'],
  [/ python train\.py$/, ' llama-cli'],
  [/--no-browser$/, '--no-browser --wait 1'],
  [/dag run\.ggtrace --layers/, 'dag llama.ggtrace --layers'],
  [/<log> --bundle ‹bundle›/, 'now.ggtrace --bundle perf.data'],
  [/^ggml2perfetto (open|query|check) ‹(?:name|trace|quoted\((?:output|input)\))›/, 'ggml2perfetto $1 run.pftrace'],
  [/^ggml2perfetto ‹name› --to json/, 'ggml2perfetto run.pftrace --to json'],
  [/‹name› -o ‹trace›/, 'run.ggtrace -o shown.pftrace'],
  [/"<SQL>"|<SQL>|"‹nextQuery.*?›"|^(ggml2perfetto query ‹names\.map.*?›)$/, '$1 "select name from slice limit 1"'],
  [/<trace, logs, or dataset>/, 'run.ggtrace'],
  [
    /compare (?:<logs…>|‹all›|‹quoted\(inputs\[0\]!\)›|<a>) --with (?:<logs…>|‹quoted\(inputs\[1\]!\)›|<b>)/,
    'compare old/ --with new/',
  ],
  [/\[--runs 5\] -- <command a> <command b>/, "-- 'llama-cli -m a.gguf' 'llama-cli -m b.gguf'"],
  [/compare ‹quoted\(folder\)›/, 'compare compared'],
  [/record --sweep .*/, 'record --sweep t=1,2 -- llama-bench -m model.gguf -t {t}'],
  [/-- ‹input›/, '-- llama-cli'],
  [/-- setpriv .*$/, '-- llama-cli'],
  [/(?:\[options\] )?-- <program>(?: \[arguments\])?/, '-- llama-cli -m model.gguf'],
  [/‹name› ‹inputs› ‹options›/, 'stats run.ggtrace --json'],
  [/export <logs\.\.> -o ‹.*?›/, 'export run.ggtrace -o dataset'],
  [/query (?:<dataset>|‹quoted\(dataset\)›)/, 'query dataset'],
  [/‹question›/, 'by-build'],
  [/<log> ‹name›/, 'run.ggtrace run.sched.dat'],
  [/<logs> <profile>/, 'run.sqlite kernels.csv'],
  [/help (?:‹meant›|‹\[command.*|<topic>)/, 'help stats'],
  [/(?:‹command ===.*?›|<command> )--help/, 'stats --help'],
  [/^ggml2perfetto (?:‹version›|‹meant›)$/, 'ggml2perfetto stats --help'],
  [/<logs?> ‹option› --json/, 'run.ggtrace --series graph --json'],
  [/why <logs> --request$/, 'why server.ggtrace --request 2'],
  [/<logs> --by request/, 'server.ggtrace --by request'],
  [/^ggml2perfetto ‹command›.*/, 'ggml2perfetto run.ggtrace'],
  [/why‹logs›/, 'why run.ggtrace'],
  [/‹logs\.map.*?›|‹runs\.map.*?›/, 't1.ggtrace t2.ggtrace t4.ggtrace'],
  [/<trace or logs>|<logs?…?>|‹.*?›/, 'run.ggtrace'],
  [/python-<pid>\.ggtrace|llama-cli-<time>\.ggtrace/, 'run.ggtrace'],
  [/ \[options\]/, ''],
  [/^ggml2perfetto record( --power)?$/, 'ggml2perfetto record$1 -- llama-cli'],
]

const inProgram = (line: string) =>
  inDocs(OF_PROGRAM.reduce((text, [placeholder, value]) => text.replace(placeholder, value), line))

describe('a command line of the program', () => {
  const lines = linesOfProgram()
  const files = new Map(lines.map(([file, line]) => [line, file]))
  for (const [i, [line, file]] of [...files].entries())
    lineTest(`${file}: ${line}`, inProgram(line), { reason: reasonOf(line), isLong: i % PARTS > 0 })

  test('is not wrong', async () => expect(await mistakesIn([...files.keys()].map(inProgram))).toEqual([]))

  test('is found in many files', () => expect(new Set(lines.map(([file]) => file)).size).toBeGreaterThan(50))
})

/** Each task of docs/tasks.md is answered by one command, in its first line: the one that is printed there. */

const [tasks] = readFileSync(join(ROOT, 'docs/tasks.md'), 'utf8').split('## By what you have')
const ROWS = [...tasks!.matchAll(/^\| (.+?) \| `(.+?)` \| (.+?) \| .* \|$/gm)].map(([, task, command, line]) => ({
  task: task!,
  command: command!,
  line: line!,
}))

/** What is recorded here has other figures than there. */
const RECORDING: readonly (readonly [command: string, line: RegExp])[] = [
  ['--sweep', /^(?:decode: t=\d is recommended, |nothing is recommended)/],
  ['--print-env', /^LD_PRELOAD=\/.*\.so$/],
  ['record ', /^(?:nothing unusual: )?decode [\d., ]+ tok\/s/],
]

/** Other models, and sizes of files: the same words. */
const isOther = (command: string) => / model\.gguf ?/.test(`${command} `)
const withoutNumbers = (text: string) => text.replaceAll(/[\d.]+(?: \d+)*/g, '#')

inParts(test).each(someOf(ROWS, 3))('$task', ({ command, line }) => {
  if (missing(command) !== undefined) return
  const first = firstLineOf(command.replace(' /logs/', ' $PWD/logs/'))
  const pattern = RECORDING.find(([part]) => command.includes(part))?.[1]
  if (pattern) expect(first).toMatch(pattern)
  else if (isOther(command)) expect(withoutNumbers(first)).toBe(withoutNumbers(line))
  else expect(first).toBe(line)
})

describe.each(['README.md', 'docs/tutorial.md'])('%s', (path) => {
  const blocks = [...readFileSync(join(ROOT, path), 'utf8').matchAll(/```console\n([\s\S]*?)```/g)].map(
    ([, block]) => block!,
  )
  const answers = blocks.flatMap((block) => [...block.matchAll(/^\$ (ggml2perfetto (?:why|compare) .*)\n([^$]*)/gm)])

  const printed = someOf(
    answers.map(([, command, output]) => [command!, output!] as const),
    3,
  )
  const declare = printed.length > 0 ? test : test.skip // a list of one is in one of both
  inParts(declare).each(printed.length > 0 ? printed : [['none', '']])('%s', (command, output) => {
    const found = outputOf(command)
    for (const part of output.split(/^…$/m)) expect(found).toContain(part.trim())
  })

  test('has some', () => expect(answers.length).toBeGreaterThan(0))
})

test('each is answered, none by what was written', () => {
  expect(ROWS.filter(({ line }) => line.startsWith('wrote '))).toEqual([])
})

test('there are twenty', () => expect(ROWS).toHaveLength(20))

import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { useFolder } from '../cli/helpers.ts'
import { linesOfPage, PAGES, ROOT, unfenced } from './collect.ts'
import { makeFiles } from './files.ts'
import { lineTest } from './workplace.ts'

/** Each command line that the docs print is executed, on files and with programs of the names that it has. */

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
  [/pidof/, 'needs a running llama-server'],
  [/^ggml2perfetto run\.ggtrace run\.sqlite/, 'needs a log and a report of one run, with a GPU'],
  [/perf mem record/, 'needs a processor whose loads perf samples'],
]

/** What placeholders are here. */
const FILLED: readonly (readonly [placeholder: RegExp, text: string])[] = [
  [/run\.ggtrace(?= (?:perf\.data |--bundle |sched\.g2p))/, 'now.ggtrace'],
  [/run\.ggtrace(?= run\.faults\.data)/, 'nano.ggtrace'],
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
  [/<logs?…?>/, 'run.ggtrace'],
  [/<topic>|<command>/, 'stats'],
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

const filled = (line: string) =>
  FILLED.reduce((text, [placeholder, value]) => text.replaceAll(new RegExp(placeholder, 'g'), value), line)

/** A line that several pages print is executed once. */
const executed = new Set<string>()
const isNew = (line: string) => !executed.has(filled(line)) && executed.add(filled(line)) !== undefined

describe.each(PAGES)('%s', (path) => {
  test('has no command line outside of its blocks', () => expect(unfenced(path)).toEqual([]))

  for (const [i, line] of linesOfPage(path).filter(isNew).entries()) {
    const reason = SKIPPED.find(([pattern]) => pattern.test(line))?.[1]
    lineTest(line, filled(line), { reason, isLong: i % 3 > 0 })
  }
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

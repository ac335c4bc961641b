import { beforeAll, describe, expect, test } from '@jest/globals'
import { useFolder } from '../cli/helpers.ts'
import { linesOfProgram } from './collect.ts'
import { makeFiles } from './files.ts'
import { lineTest } from './workplace.ts'

/** Each command line in the texts of the program is executed: examples of the help, hints, advice, last lines. */

useFolder()
beforeAll(makeFiles)

/** What the program computes for a line, and what its placeholders are: as it is here. */
const FILLED: readonly (readonly [placeholder: RegExp, text: string])[] = [
  [/open ‹name› --tokens/, 'open run.ggtrace --tokens'],
  [/^ggml2perfetto peaks‹.*?›/, 'ggml2perfetto peaks'],
  [/ python train\.py$/, ' llama-cli'],
  [/--no-browser$/, '--no-browser --wait 1'],
  [/dag run\.ggtrace --layers/, 'dag llama.ggtrace --layers'],
  [/run\.ggtrace --bundle perf\.data|<log> --bundle ‹bundle›/, 'now.ggtrace --bundle perf.data'],
  [/^ggml2perfetto (open|query|check) ‹(?:name|trace|quoted\((?:output|input)\))›/, 'ggml2perfetto $1 run.pftrace'],
  [/^ggml2perfetto ‹name› --to json/, 'ggml2perfetto run.pftrace --to json'],
  [/‹name› -o ‹trace›/, 'run.ggtrace -o shown.pftrace'],
  [/"<SQL>"|<SQL>|"‹nextQuery.*?›"|^(ggml2perfetto query ‹names\.map.*?›)$/, '$1 "select name from slice limit 1"'],
  [/<trace, logs, or dataset>/, 'run.ggtrace'],
  [
    /compare (?:<logs…>|‹all›|‹quoted\(inputs\[0\]!\)›|<a>) --with (?:<logs…>|‹quoted\(inputs\[1\]!\)›|<b>)/,
    'compare old/ --with new/',
  ],
  [/\[--runs 5\] -- <command a> <command b>/, "--runs 1 -- 'llama-cli -m a.gguf' 'llama-cli -m b.gguf'"],
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
  [/--task 17/, '--task 5'],
  [/ \[options\]/, ''],
  [/^ggml2perfetto (query|compare|report|open|export)$/, 'ggml2perfetto $1 --help'],
  [/^ggml2perfetto (stats|why|stats --contents)$/, 'ggml2perfetto $1 run.ggtrace'],
  [/^ggml2perfetto record( --power)?$/, 'ggml2perfetto record$1 -- llama-cli'],
]

const filled = (line: string) => FILLED.reduce((text, [placeholder, value]) => text.replace(placeholder, value), line)

describe('a command line of the program', () => {
  const lines = linesOfProgram()
  const files = new Map(lines.map(([file, line]) => [line, file]))
  for (const [i, [line, file]] of [...files].entries())
    lineTest(`${file}: ${line}`, filled(line), { isLong: i % 3 > 0 })

  test('is found in many files', () => expect(new Set(lines.map(([file]) => file)).size).toBeGreaterThan(50))
})

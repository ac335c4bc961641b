import { chmodSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { inParts, someOf } from '../long.ts'
import { at, canMount, MOE, names, read, run, shell, useFolder, withMount } from './helpers.ts'

const ONEDNN = readFileSync(new URL('../fixtures/onednn/v2.6.log', import.meta.url), 'utf8')

useFolder()

beforeAll(() => {
  mkdirSync(at('folder'))
  writeFileSync(at('empty'), '')
  writeFileSync(at('garbage'), 'Hello, is this a log?')
  writeFileSync(at('image.png'), Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10, 0))
  writeFileSync(at('model.gguf'), 'GGUF\x03\0\0\0')
  writeFileSync(at('program'), '\x7fELF\x02\x01\x01')
  writeFileSync(at('run.csv'), readFileSync(MOE))
  run(['run.csv'])
})

/** Exit code 1, an error in one to some lines, nothing on stdout, and no file that was not there before. */
const fails = (args: readonly string[], message: string | RegExp) => {
  const before = names()
  const { code, stdout, stderr } = run(args)
  expect({ code, stdout, names: names() }).toEqual({ code: 1, stdout: '', names: before })
  expect(stderr).toMatch(/^error: /)
  expect(stderr).toMatch(message)
}

describe.each([[[]], [['convert']], [['open']], [['info']], [['check']], [['query']]])('%j', (command) => {
  const sql = command[0] === 'query' ? ['select 1'] : []

  test.each([
    ['empty', 'empty: the input is empty (0 bytes)'],
    ['folder', command[0] === 'query' ? 'folder: is not a dataset' : 'folder: cannot read: is a directory'],
    [
      'missing',
      command.length > 0 ? 'missing: cannot read: no such file' : 'missing: no such command, and no such file',
    ],
    ['run.csv/x', 'run.csv/x: cannot read: a part of the path is not a directory'],
    ['/proc/self/mem', '/proc/self/mem: cannot read: input/output error'],
    ['-', 'stdin: the input is empty (0 bytes)'],
    ['a'.repeat(300), 'name too long'],
  ])('%s', (input, message) => fails([...command, input, ...sql], message))

  const asUser = process.getuid?.() === 0 ? test.skip : test
  asUser('a file without permission (not for root, whom modes do not stop)', () => {
    rmSync(at('secret'), { force: true })
    writeFileSync(at('secret'), 'x')
    chmodSync(at('secret'), 0)
    fails([...command, 'secret', ...sql], 'secret: cannot read: permission denied')
  })
})

describe('what is neither a log nor a trace: two lines, with the first bytes', () => {
  test.each([[['garbage']], [['info', 'garbage']], [['query', 'garbage', 'select 1']]])('%j', (args) => {
    fails(
      args,
      /^error: garbage: not a known format; it begins with 48 65 6c 6c 6f .* "Hello, is this a"\nhint: name the format with --from.*\n?$/,
    )
  })
  test.each([
    ['lines with marks of a quotation', ONEDNN.replace(/^/gm, '> '), 'onednn'],
    ['lines with times of a collector', ONEDNN.replace(/^/gm, '2026-11-25 10:00:00.123 '), 'onednn'],
    ['a log of which the first line is cut', readFileSync(MOE, 'utf8').slice(9), undefined],
    ['the name of a tool', 'a note about turbostat and others\n', 'turbostat'],
    ['words of titles that name nothing', 'results of the same list, with times\n', undefined],
  ])('the nearest format: %s', (_, text, format) => {
    writeFileSync(at('near'), text)
    const hint =
      format === undefined ? /\nhint: name the format with --from; / : `\nhint: the nearest one is ${format} (`
    fails(['near'], hint)
    expect(run(['near']).stderr.trimEnd().split('\n')).toHaveLength(2)
  })
  test('bytes that are no text', () => fails(['image.png'], 'it begins with 89 50 4e 47 0d 0a 1a 0a 00  ".PNG....."'))
  test('a gzip stream that breaks before anything came out of it', () => {
    writeFileSync(at('cut.gz'), gzipSync('ts:1,func:x\n').subarray(0, 12))
    fails(
      ['cut.gz'],
      /cut\.gz: gzip: byte \d+ \(0x\d+\): expected a log that can be decompressed, found unexpected end of file\nhint: the file was cut/,
    )
  })
  test('check', () => fails(['check', 'garbage'], 'garbage: not a Perfetto trace (protobuf): packet 0, byte 0'))
})

describe('a trace for a log, a log for a trace', () => {
  test('convert', () =>
    fails(
      ['run.csv.pftrace'],
      /is a trace already.*\nhint: ggml2perfetto open run\.csv\.pftrace, or: ggml2perfetto query/,
    ))
  test('info', () => fails(['info', 'run.csv.pftrace'], /is a trace, not a log\nhint: ggml2perfetto check .*query/))
  test('check', () => fails(['check', 'run.csv'], /is a log, not a trace\nhint: convert it first/))
})

describe('outputs that cannot be written', () => {
  test('the input itself, also by another name', () => {
    linkSync(at('run.csv'), at('same.csv'))
    fails(['run.csv', '-o', 'run.csv'], 'run.csv: is the input itself')
    fails(['run.csv', '-o', './same.csv'], 'same.csv: is the input itself')
    expect(shell('$CLI - -o run.csv < run.csv').stderr).toMatch('run.csv: is the input itself')
    expect(read('run.csv').equals(readFileSync(MOE))).toBe(true)
  })
  test('a folder', () =>
    fails(['run.csv', '-o', 'folder'], /is a directory\nhint: name a file, such as folder\/run\.csv\.pftrace/))
  test('in a folder that is not there', () =>
    fails(['run.csv', '-o', 'no/x'], 'no/x: cannot write: no such folder: no'))
  test('below a file', () =>
    fails(['run.csv', '-o', 'garbage/x'], 'garbage/x: cannot write: a part of the path is not'))
  test('a full device', () =>
    fails(['run.csv', '-o', '/dev/full'], '/dev/full: cannot write: no space left on the device'))

  test('a limit on file sizes', () => {
    const before = names()
    const { code, stderr } = shell('ulimit -f 64; $CLI run.csv -o big.pftrace')
    expect({ code, stderr }).toEqual({ code: 1, stderr: 'error: big.pftrace: cannot write: file too large\n' })
    expect(names()).toEqual(before)
  })

  inParts(test)('stdout on a full device', () => {
    const lines = ['run.csv -o -', 'info run.csv', 'query run.csv "select * from slice"', '--help']
    for (const args of someOf(lines, 4)) {
      const { code, stderr } = shell(`$CLI ${args} > /dev/full`)
      expect({ args, code }).toEqual({ args, code: 1 })
      expect(stderr).toMatch('error: standard output: no space left on device')
    }
  })

  const mounting = canMount() ? test : test.skip
  mounting('a full disk (needs the right to mount): the older trace stays', () => {
    withMount('disk', 'size=64k', () => {
      writeFileSync(at('disk/x'), 'older')
      const { code, stderr } = run(['run.csv', '-o', 'disk/x', '--force'])
      expect({ code, stderr }).toEqual({
        code: 1,
        stderr: 'error: disk/x: cannot write: no space left on the device\n',
      })
      expect(shell('ls -A disk; cat disk/x').stdout).toBe('x\nolder')
    })
  })
  mounting('a file system without writing (needs the right to mount)', () => {
    withMount('disk', 'ro', () =>
      fails(['run.csv', '-o', 'disk/x'], 'disk/x: cannot write: the file system is read-only'),
    )
  })
})

describe('wrong arguments', () => {
  test.each([
    [['run.csv', '--bar'], '--bar: no such option'],
    [['run.csv', '--detail', 'most'], 'error: --detail "most": expected names, shapes or full'],
    [['run.csv', '--op-name', 'x'], 'error: --op-name "x": expected role, op or tensor'],
    [['query', 'run.csv', 'select 1', '--format', 'xml'], 'error: --format "xml": expected table, csv or json'],
    [['run.csv', '-o', 'a', '-o', 'b'], '--output is given 2 times'],
    [['run.csv', '--tokens', '1', '--tokens', '2'], '--tokens is given 2 times'],
    [['run.csv', '-o'], '-o: its value is missing'],
    [['-', '-'], 'stdin (-) can be read only once'],
    [['convert'], 'no input is given'],
    [['info'], 'no input is given'],
    [['check', 'run.csv', 'run.csv'], 'run.csv: one argument too many\nhint: ggml2perfetto check --help'],
    [['run.csv', '-v'], '-v: no such option\nhint: did you mean --version?'],
    [['record', '-p', '4194305'], 'error: attach 4194305: there is no such process\n'],
    [
      ['record', '--pid', '1'],
      '--pid: no such option\nhint: a process that runs is recorded by sudo ggml2perfetto record --attach <process id>\n',
    ],
    [
      ['attach', '1'],
      'attach: no such command, and no such file\nhint: a process that runs is recorded by sudo ggml2perfetto record --attach <process id>\n',
    ],
    [['view', 'run.csv'], 'view: no such command, and no such file\nhint: did you mean ggml2perfetto open?'],
    [['diff', 'run.csv', 'run.csv'], 'hint: did you mean ggml2perfetto compare?'],
    [['bench', 'run.csv'], 'hint: did you mean ggml2perfetto compare?'],
    [['model.gguf'], 'model.gguf: not a known format; it begins with 47 47 55 46'],
    [['model.gguf'], 'hint: is a model: ggml2perfetto stats model.gguf describes it\n'],
    [['program'], 'hint: is a program: ggml2perfetto record -- program records it\n'],
    [['compare', 'run.csv', 'run.csv'], 'hint: ggml2perfetto compare run.csv --with run.csv\n'],
  ])('%j', (args, message) => fails(args, message))

  test('none at all: help, and exit code 1', () => {
    const { code, stdout, stderr } = run([])
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(/Commands:\n {2}ggml2perfetto record/)
  })
})

test('--help and --version', () => {
  for (const command of [[], ['convert'], ['open'], ['info'], ['check'], ['query']]) {
    const { code, stdout, stderr } = run([...command, '--help'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(/Examples:\n {2}ggml2perfetto /)
  }
  expect(run(['--version']).stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
})

test('two runs are no one run: the error of export has its hint in a line of its own', () => {
  const both = [MOE, 'run.csv']
  const { code, stderr } = run(['export', '--together', ...both, '-o', 'dataset'])
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(
      /^error: .* both contain operators: they are of two processes or runs\nhint: export each .*convert and why take them/,
    ),
  ])
})

import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { COMMANDS } from '../../bin/commands.ts'
import { at, MOE, names, run, useFolder } from './helpers.ts'

/** What the command says of words that are probably mistyped, and that it loses nothing by them. */

useFolder()

beforeAll(() => copyFileSync(MOE, at('run.csv')))

const refused = (...args: string[]) => {
  const before = names()
  const { code, stdout, stderr } = run(args)
  expect([code, stdout, names()]).toEqual([1, '', before])
  return stderr
}

describe('options', () => {
  test.each([
    [['run.csv', '--detial', 'full'], '--detial', '--detail'],
    [['--toekns', '3', 'run.csv'], '--toekns', '--tokens'],
    [['query', 'run.csv', 'select 1', '--fromat', 'csv'], '--fromat', '--format'],
    [['open', 'run.csv', '--no-brwser'], '--no-brwser', '--no-browser'],
    [['record', '--lvel', 'op', 'true'], '--lvel', '--level'],
    [['record', '--opn', '--', 'true'], '--opn', '--open'], // as near to --ops
    [['info', '--jsn', 'run.csv'], '--jsn', '--json'], // takes the input as its value
  ] as const)('%j: did you mean', (args, unknown, meant) => {
    expect(refused(...args)).toBe(`error: ${unknown}: no such option\nhint: did you mean ${meant}?\n`)
  })

  test.each([
    ['run.csv', '--no-tokens'],
    ['record', '--no-output', 'true'],
    ['query', '--no-format', 'run.csv', 'select 1'],
  ])('%s %s: --no-… of an option with a value', (...args) => {
    expect(refused(...args)).toMatch(
      /^error: --no-… turns off an option without a value; found an option with a value\n/,
    )
  })

  test('that resemble none: as they were written, with those that the command has', () => {
    for (const name of Object.keys(COMMANDS).filter((name) => name !== 'record')) {
      const { stderr } = run([
        name,
        ...(/[<[]/.test(`${Object(COMMANDS)[name].command}`) ? ['run.csv'] : []),
        '--gpu-layers',
        '10',
      ])
      expect([name, stderr]).toEqual([
        name,
        expect.stringMatching(
          /^error: --gpu-layers: no such option\nhint: (?:the options are --[a-z-]+(?:, --[a-z-]+)*|ggml2perfetto (?:nvtx|check) --help)\n$/,
        ),
      ])
      expect(stderr.replace(/ggml2perfetto .*/, '')).not.toMatch(/--(?:inputs|help|program|trace)\b/) // what is given without a name is none
    }
  })
})

test('a mistyped format: the known ones, and the one that was probably meant', () => {
  expect(refused('run.csv', '--from', 'ggtrce')).toMatch(
    /^error: no format is called "ggtrce"; [\s\S]*\nhint: did you mean ggtrace\?\n$/,
  )
})

describe('commands', () => {
  test('did you mean', () => {
    expect(refused('qurey', 'run.csv', 'select 1')).toBe(
      'error: qurey: no such command, and no such file\nhint: did you mean ggml2perfetto query?\n',
    )
    expect(refused('recrod', '--', 'true')).toContain('did you mean ggml2perfetto record?')
    expect(refused('nothing-like-it')).toBe(
      'error: nothing-like-it: no such command, and no such file\nhint: ggml2perfetto --help\n',
    )
  })

  test('a file that is called like a misspelled command is an input', () => {
    copyFileSync(MOE, at('infos'))
    expect(run(['infos', '-o', 'infos.pftrace'])).toMatchObject({ code: 0 })
  })

  test('completion prints a script, which asks for words', () => {
    expect(run(['completion']).stdout).toContain('ggml2perfetto --get-yargs-completions')
    expect(run(['--get-yargs-completions', 'ggml2perfetto', 'qu']).stdout.split('\n')).toContain('query')
    expect(run(['--get-yargs-completions', 'ggml2perfetto', 'stats', '--j']).stdout.split('\n')).toContain('--json')
  })
})

describe('arguments in another order', () => {
  test('the trace among the inputs', () => {
    const said =
      'error: out.pftrace: no such input\nhint: -o is for the trace to write: ggml2perfetto run.csv -o out.pftrace\n'
    expect(refused('out.pftrace', 'run.csv')).toBe(said)
    expect(refused('run.csv', 'out.pftrace')).toBe(said)
  })

  test('a log after -o, which would be lost', () => {
    copyFileSync(MOE, at('other.csv'))
    expect(refused('run.csv', '-o', 'other.csv')).toBe(
      'error: other.csv: is a log, which would be lost\nhint: name another file, such as other.csv.pftrace; --force replaces it\n',
    )
    expect(readFileSync(at('other.csv')).equals(readFileSync(MOE))).toBe(true)
    // Older traces, of both kinds, and empty files are replaced.
    for (const output of ['old.pftrace', 'old.json', 'old.pftrace.gz']) {
      writeFileSync(at(output), '')
      expect([output, run(['run.csv', '-o', output]).code]).toEqual([output, 0])
      expect([output, run(['run.csv', '-o', output]).code]).toEqual([output, 0])
    }
  })

  test('a file after -o that is none of ours, such as a model, which would be lost', () => {
    const model = Buffer.from('GGUF, or anything else')
    const commands = [
      ['run.csv', '-o'],
      ['report', 'run.csv', '-o'],
      ['dag', 'run.csv', '-o'],
      ['compare', 'run.csv', '--with', 'run.csv', '--report'],
      ['record', '-o'],
    ]
    for (const [i, command] of commands.entries()) {
      const name = ['model.pftrace', 'model.html', 'model.json', 'model.html', 'model.ggtrace'][i]!
      writeFileSync(at(name), model)
      const words = command[0] === 'record' ? [...command, name, '--', 'true'] : [...command, name]
      expect([command, refused(...words)]).toEqual([
        command,
        expect.stringContaining(
          `error: ${name}: is no file of this program, which would be lost\nhint: name another file`,
        ),
      ])
      expect(readFileSync(at(name)).equals(model)).toBe(true)
      if (command[0] === 'record') continue
      for (const forced of [['--force'], []]) expect([command, run([...words, ...forced]).code]).toEqual([command, 0])
    }
  })

  test('the SQL before the inputs', () => {
    expect(refused('query', 'select 1', 'run.csv')).toBe(
      'error: the SQL comes after the inputs\nhint: ggml2perfetto query run.csv "select name, dur from slice limit 10"\n',
    )
  })
})

test('large numbers are grouped for people, and in no data', () => {
  const sql =
    'with recursive n(i) as (select 1 union all select i + 1 from n where i < 1234) select i, 12345 as value from n'
  expect(run(['query', 'run.csv', sql]).stdout).toMatch(/1234 {2}12345\n\(1 234 rows\)\n$/)
  expect(run(['query', 'run.csv', sql, '--format', 'csv']).stdout).toMatch(/\n1234,12345\n$/)
  expect(run(['info', 'run.csv']).stdout).toMatch(/operators +2 664\n/)
})

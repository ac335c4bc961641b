import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from '@jest/globals'
import type { Comparison } from '../../lib/analysis.ts'
import { presets } from '../llama/gguf.mjs'
import { ensureLlama, hasLlama, LIB, model, runner } from '../llama/testbed.ts'
import { at, run, useFolder } from './helpers.ts'
import { runOfCalls } from './runs.ts'
import '../live.ts'
import { inLong } from '../long.ts'

/** `compare`: of logs, of folders, of stored Analyses, and of commands that it records. */

useFolder()
beforeAll(() => {
  for (const folder of ['old', 'new', 'build']) mkdirSync(at(folder))
  for (let i = 1; i <= 5; i++) {
    writeFileSync(at(`old/run-${i}.ggtrace`), runOfCalls(100 + i, 10 + 0.01 * i))
    writeFileSync(at(`new/run-${i}.ggtrace`), runOfCalls(200 + i, 12 + 0.01 * ((2 * i) % 5)))
  }
})

const jsonOf = (...args: readonly string[]) => JSON.parse(run(['compare', ...args, '--json']).stdout) as Comparison

describe('logs', () => {
  test('a table: what got slower first, with its interval', () => {
    const { code, stdout, stderr } = run(['compare', 'old', '--with', 'new'])
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(
      /^decode 20 % slower than "old" \(certain: 19\.\d … 20\.\d %\)[^\n]*\n\nsides\n {2}old {2}old\/run-1\.ggtrace … old\/run-5\.ggtrace: 5 runs\n/,
    )
    expect(stdout).toMatch(/\n {2}TPOT +10 ms +12 ms +\[\+1\d\.\d \+1\d\.\d \+2\d\.\d\] +│ +● +slower\n/)
    expect(stdout).toMatch(
      /\noperators, per call\n.*\n {2}ffn_up MUL_MAT +decode +5\.0\d ms +7\.0\d ms +\[\+3.* slower\n/,
    )
  })

  test('files, folders and stored Analyses give the same', () => {
    const files = (folder: string) => readdirSync(at(folder)).map((name) => `${folder}/${name}`)
    const byFolder = jsonOf('old', '--with', 'new')
    expect(jsonOf(...files('old'), '--with', ...files('new')).effects).toEqual(byFolder.effects)
    for (const folder of ['old', 'new']) {
      mkdirSync(at(`${folder}-stored`))
      for (const path of files(folder))
        writeFileSync(
          at(path.replace('/', '-stored/').replace('.ggtrace', '.json')),
          run(['stats', path, '--json']).stdout,
        )
    }
    expect(jsonOf('old-stored', '--with', 'new-stored').effects).toEqual(byFolder.effects)
    expect(byFolder).toMatchObject({ schema: 'ggml2perfetto.comparison/1', before: { runs: 5 }, after: { runs: 5 } })
  })

  test('exit codes of --fail-above: 0 within, 2 worse, 3 not certain', () => {
    const codeOf = (...args: readonly string[]) => run(['compare', ...args]).code
    expect(codeOf('old', '--with', 'new', '--fail-above', '5%')).toBe(2)
    expect(codeOf('new', '--with', 'old', '--fail-above', '5%')).toBe(0)
    expect(codeOf('old', '--with', 'new', '--fail-above', '50')).toBe(0)
    const two = ['old/run-1.ggtrace', 'old/run-2.ggtrace', '--with', 'new/run-1.ggtrace', 'new/run-2.ggtrace']
    const { code, stdout } = run(['compare', ...two, '--fail-above', '5%'])
    expect(code).toBe(3)
    expect(stdout).toMatch(
      /^not certain: decode may take 19\.\d … 20\.\d % more time than "a": 3 runs a side would decide\n {2}slower by more than 5\.0 %: not certain: 2 runs a side: it takes 3\n/,
    )
    expect(codeOf(...two)).toBe(0)
  })

  test('a factor of two is a factor; sides have the names that are given', () => {
    mkdirSync(at('fast'))
    for (let i = 1; i <= 5; i++) writeFileSync(at(`fast/run-${i}.ggtrace`), runOfCalls(400 + i, 2.5 + 0.002 * i))
    const named = ['compare', 'old', '--with', 'fast', '--name', 'before', '--name', 'after']
    const { stdout } = run(named)
    expect(stdout).toMatch(/^4\.0 × faster decode than "before" \(certain: 3\.9\d … 4\.0\d\)/)
    expect(stdout).toMatch(/\n {2}TPOT +10 ms +2\.51 ms +\[÷4\.0 ÷4\.0 ÷4\.0\] .* faster\n/)
    expect(stdout).toMatch(/\n +before +after +\[low estimate high\] %/)
    expect(run([...named, '--name', 'x']).stderr).toMatch(/^error: --name: expected the names of both sides/)
    expect(jsonOf(...named.slice(1)).verdict).toBe(stdout.split('\n')[0])
  })

  test('where nothing can be seen, it says from which difference on it would, and with how many runs', () => {
    const noisy = [10, 10.4, 10.8]
    for (const side of ['x', 'y']) {
      mkdirSync(at(side))
      for (const [i, ms] of noisy.entries())
        writeFileSync(at(`${side}/${i}.ggtrace`), runOfCalls(500 + i, ms + (side === 'x' ? 0.01 : 0)))
    }
    const { stdout } = run(['compare', 'x', '--with', 'y'])
    expect(stdout).toMatch(
      /^no difference of decode above \d+ % can be seen with 3 runs a side; \d+ would show \d+ %\n/,
    )
    const [, above, runs, then] = stdout.match(/above (\d+) % .*; (\d+) would show (\d+) %/)!.map(Number)
    expect([runs! > 3, then! < above!]).toEqual([true, true])
    expect(run(['compare', 'old/run-1.ggtrace', '--with', 'new/run-1.ggtrace']).stdout).toMatch(
      /^decode \d+ % slower than "old\/run-1.ggtrace", which is no evidence with 1 run a side: record 3, better 5\n/,
    )
  })

  test('another build is listed, and is no obstacle', () => {
    for (let i = 1; i <= 3; i++) writeFileSync(at(`build/${i}.ggtrace`), runOfCalls(300 + i, 10 + 0.01 * i, '0.27.0'))
    expect(run(['compare', 'old', '--with', 'build']).stdout).toMatch(
      /\nwhat differs\n.*\n {2}build +0\.25\.1 +0\.27\.0\n/,
    )
  })

  test('Markdown for a pull request', () => {
    const { stdout } = run(['compare', 'old', '--with', 'new', '--markdown'])
    expect(stdout).toMatch(/^\*\*decode 20 % slower than "old" .*\*\*\n\n\*\*speed\*\*\n/)
    expect(stdout.split('<details>')[0]!.split('\n').length).toBeLessThanOrEqual(20)
    expect(stdout).toMatch(/<details><summary>All figures<\/summary>\n\n\*\*[\s\S]*\n<\/details>\n$/)
    expect(stdout).toMatch(/\n\| TPOT \| 10 ms \| 12 ms \| \\\[\+1.*\\\] \| slower \|\n/)
  })

  test.each([
    [['old/run-1.ggtrace'], /^error: nothing to compare old\/run-1\.ggtrace with\nhint: .* --with <logs…>/],
    [[], /^error: no input is given\nhint: ggml2perfetto compare --help/],
    [['old', '--with', 'missing.ggtrace'], /^error: missing\.ggtrace: cannot read: no such file/],
    [
      ['old', '--with', 'new', '--fail-above', 'much'],
      /^error: --fail-above "much": expected a percentage, such as 5%/,
    ],
    [['old', '--with', 'new', '--json', '--markdown'], /^error: --json and --markdown: expected one of them/],
    [['old', '--with', 'new', '--runs', '3'], /^error: --runs is for commands that are recorded/],
    [['--', 'true'], /^error: 1 command after --; expected two, each in quotes\nhint: ggml2perfetto compare -- /],
  ] as const)('%j', (args, expected) => {
    const { code, stderr, stdout } = run(['compare', ...args])
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toMatch(expected)
  })
})

const recorded = hasLlama() ? describe : describe.skip

recorded('commands (needs linux-x64 and cc)', () => {
  inLong(test)('are recorded by turns; the role whose weights are larger is the first one', async () => {
    await ensureLlama()
    const program = await runner()
    const [a, b] = [await model('tinyDense'), await model({ ...presets.tinyDense, types: { ffn_down: 'Q8_0' } })]
    const command = (path: string) => `${program} --lib ${LIB} --model ${path} --threads 1 --prompt 16 --decode 60`
    rmSync(at('recorded'), { recursive: true, force: true }) // of an attempt before
    const args = ['--runs', '4', '-o', 'recorded', '--', command(a.path), command(b.path)]
    const { code, stdout, stderr } = run(['compare', '--json', ...args])
    expect([code, stderr]).toEqual([
      0,
      expect.stringMatching(/the logs are in recorded; again: ggml2perfetto compare recorded\n$/),
    ])
    expect(readdirSync(at('recorded')).sort()).toEqual(
      ['a', 'b'].flatMap((side) => [1, 2, 3, 4].map((i) => `${side}-${i}.ggtrace`)),
    )
    const { effects, differences, is_comparable } = JSON.parse(stdout) as Comparison
    const [first] = effects.filter(({ group, phase }) => group === 'role' && phase === 'decode')
    expect(first).toMatchObject({ name: 'ffn_out MUL_MAT', verdict: expect.stringMatching(/slower$/) })
    expect(differences.map(({ what }) => what)).toEqual(expect.arrayContaining(['weights', 'model files']))
    expect(is_comparable).toBe(true)
    expect(jsonOf('recorded').effects).toEqual(effects)
    const again = run(['compare', ...args])
    expect([again.code, again.stderr]).toEqual([
      1,
      expect.stringMatching(/^error: recorded: contains runs already \([ab]-1\.ggtrace\)\nhint: /),
    ])
  })

  test('a command that fails ends it, with its messages', () => {
    const { code, stderr } = run(['compare', '-o', 'failed', '--', 'echo no model >&2; exit 4', 'true'])
    expect([code, stderr]).toEqual([
      1,
      'warm-up of a\nerror: echo no model >&2; exit 4: ended with exit code 4; its last messages:\nno model\n',
    ])
    expect(existsSync(at('failed/a.messages'))).toBe(false)
  })
})

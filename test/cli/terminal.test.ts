import { spawnSync } from 'node:child_process'
import { copyFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { GgtraceWriter } from '../../lib/core.ts'
import { inLong, inParts, someOf } from '../long.ts'
import { at, CLI, folder, run, useFolder } from './helpers.ts'

/** What an input holds is obeyed by no terminal; pipes get it exactly where that is asked for. */

useFolder()

const ESC = '\x1b'
/** Clears the screen, makes a link, rings, turns the direction of writing, and looks like a line of ours. */
const HOSTILE = `${ESC}[2J${ESC}]8;;http://x${ESC}\\\x07\x9b31m\u202eevil\u2066\x7f\nwrote safe.pftrace`
const SHOWN = '\\x1b[2J\\x1b]8;;http://x\\x1b\\\\x07\\x9b31m\\u202eevil\\u2066\\x7f\\nwrote safe.pftrace'
const QUERY = ['query', 'hostile.ggtrace', "select name from slice where category = 'operator'"]
// \r is the terminal's own.
// biome-ignore lint/suspicious/noControlCharactersInRegex: what must not be there
const DANGEROUS = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/

beforeAll(() => {
  const writer = new GgtraceWriter({ originNs: 1_000n })
  writer.type(0, 'f32')
  writer.run({ command: HOSTILE, level: 'op', [HOSTILE]: 'key' }, { monotonic: 1n, boottime: 1n, realtime: 1n })
  writer.op(1, HOSTILE)
  writer.type(0, HOSTILE)
  const tensor = writer.tensor({ name: HOSTILE, op: 1, type: 0, ne: [1, 1, 1, 1], nb: [4, 4, 4, 4] })
  const thread = writer.thread(1, 0)
  thread.operator({ tensor, startNs: 10, endNs: 20, waitEndNs: 20 })
  writer.end(30)
  writeFileSync(at('hostile.ggtrace'), writer.take())
  writeFileSync(at('hostile.json'), `{"traceEvents":[{"name":${JSON.stringify(HOSTILE)},"ph":"Q","ts":1}]}`)
  writeFileSync(at('hostile.txt'), `${HOSTILE}\n`.repeat(20))
})

/** What a terminal gets when the CLI runs in it. */
function onTerminal(args: readonly string[], columns = 80, env: Record<string, string> = {}): string {
  const { stdout, stderr } = run(args, { columns, env: { NO_COLOR: '', ...env } })
  return stdout + stderr
}

const quote = (arg: string) => `'${arg.replaceAll("'", "'\\''")}'`

/** The same from a real terminal. */
function onReal(args: readonly string[], columns = 80): string {
  const line = `stty cols ${columns}; NO_COLOR= ${[process.execPath, CLI, ...args].map(quote).join(' ')}`
  const options = { cwd: folder, encoding: 'utf8', timeout: 120_000 } as const
  return spawnSync('script', ['-qec', line, '/dev/null'], options).stdout.replaceAll('\r\n', '\n')
}

const hasTerminal = spawnSync('script', ['-qec', 'true', '/dev/null']).status === 0
const terminalTest = hasTerminal ? test : test.skip

describe('a terminal', () => {
  inLong(terminalTest)('of this machine gets the same', () => {
    expect(onReal(QUERY)).toBe(onTerminal(QUERY))
    expect(onReal([HOSTILE])).toBe(onTerminal([HOSTILE]))
  })

  test.each([
    [[...QUERY]],
    [[...QUERY, '--format', 'csv']],
    [[...QUERY, '--format', 'json']],
    [['info', 'hostile.ggtrace']],
    [['info', 'hostile.ggtrace', '--json']],
    [['hostile.ggtrace', '-o', 'hostile.pftrace']],
    [['check', 'hostile.ggtrace']],
    [['hostile.txt']],
    [['hostile.json', '-o', 'json.pftrace']],
    [['info', 'hostile.json']],
    [['query', 'hostile.ggtrace', HOSTILE]],
    [[HOSTILE]],
  ])('%j: is sent no control character', (args) => {
    const text = onTerminal(args)
    expect(text.length).toBeGreaterThan(10)
    expect(DANGEROUS.exec(text)).toBe(null)
    expect(text.split(/\r?\n/).filter((line) => line.startsWith('wrote safe'))).toEqual([])
  })

  test('shows them, in JSON as escapes of JSON', () => {
    expect(onTerminal([...QUERY, '--format', 'csv'])).toBe(`name\n${SHOWN} ${SHOWN}\n`)
    const json = JSON.parse(onTerminal([...QUERY, '--format', 'json']))
    expect(json).toEqual([{ name: `${HOSTILE} ${HOSTILE}` }])
    expect(JSON.parse(onTerminal(['info', 'hostile.ggtrace', '--json'])).attributes.command).toBe(HOSTILE)
  })
})

describe('a pipe', () => {
  test('gets exact CSV where that is asked for, and JSON with the exact values', () => {
    const name = `${HOSTILE} ${HOSTILE}`
    expect(run([...QUERY, '--format', 'csv', '--csv-exact']).stdout).toBe(`name\n"${name}"\n`)
    expect(run([...QUERY, '--format', 'csv']).stdout).toBe(`name\n${SHOWN} ${SHOWN}\n`)
    const { stdout } = run([...QUERY, '--format', 'json'])
    expect([JSON.parse(stdout), DANGEROUS.test(stdout)]).toEqual([[{ name }], false])
    expect(JSON.parse(run(['info', 'hostile.ggtrace', '--json']).stdout).attributes.command).toBe(HOSTILE)
  })
})

describe('why', () => {
  const plain = (text: string) =>
    ['[1;31m', '[1m', '[0m'].reduce((rest, code) => rest.replaceAll(`${ESC}${code}`, ''), text)
  const words = (text: string) => text.split(/\s+/).join(' ').trim()

  inParts(test).each(someOf([40, 80, 200], 3, 1))(
    'is wrapped to a terminal of %d columns, bold where it matters, in red what costs most; the words are the same',
    (width) => {
      copyFileSync(join(dirname(dirname(CLI)), 'test/recorded/preempted.ggtrace.gz'), at('run.gz'))
      const { stdout } = run(['why', 'run.gz'])
      expect(stdout).not.toContain(ESC)
      expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeGreaterThan(150)
      const shown = onTerminal(['why', 'run.gz'], width)
      const lines = plain(shown).split('\n')
      expect(lines.filter((line) => line.length > width)).toEqual([])
      expect(words(lines.join('\n'))).toBe(words(stdout))
      expect(shown).toContain(`${ESC}[1;31m1. worker 0 was preempted`)
      expect(onTerminal(['why', 'run.gz'], width, { NO_COLOR: '1' })).toBe(lines.join('\n'))
      if (width === 40 && hasTerminal) expect(onReal(['why', 'run.gz'], width)).toBe(shown)
    },
  )

  test('SQL only where it is asked for', () => {
    expect(run(['why', 'run.gz']).stdout).not.toMatch(/select|ggml2perfetto query/)
    expect(run(['why', 'run.gz', '--checks']).stdout).toMatch(
      / {3}check of preempted: ggml2perfetto query run\.gz "select sum/,
    )
  })
})

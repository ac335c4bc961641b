import { spawnSync } from 'node:child_process'
import { copyFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { GgtraceWriter } from '../../lib/core.ts'
import { at, CLI, folder, run, useFolder } from './helpers.ts'

/** What an input holds is obeyed by no terminal; files and pipes get it byte by byte. */

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

const quote = (arg: string) => `'${arg.replaceAll("'", "'\\''")}'`

/** What a terminal gets when the CLI runs in it. */
const onTerminal = (...args: readonly string[]) => onTerminalAfter('true', ...args)

/** The same after a command, which sets its width. */
function onTerminalAfter(before: string, ...args: readonly string[]): string {
  const line = `${before}; ${[process.execPath, CLI, ...args].map(quote).join(' ')}`
  const { stdout } = spawnSync('script', ['-qec', line, '/dev/null'], {
    cwd: folder,
    encoding: 'utf8',
    timeout: 120_000,
  })
  return stdout
}

const terminalTest = spawnSync('script', ['-qec', 'true', '/dev/null']).status === 0 ? test : test.skip

describe('a terminal', () => {
  terminalTest.each([
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
    const text = onTerminal(...args)
    expect(text.length).toBeGreaterThan(10)
    expect(DANGEROUS.exec(text)).toBe(null)
    expect(text.split(/\r?\n/).filter((line) => line.startsWith('wrote safe'))).toEqual([])
  })

  terminalTest('shows them, in JSON as escapes of JSON', () => {
    expect(onTerminal(...QUERY, '--format', 'csv')).toBe(`name\r\n${SHOWN} ${SHOWN}\r\n`)
    const json = JSON.parse(onTerminal(...QUERY, '--format', 'json'))
    expect(json).toEqual([{ name: `${HOSTILE} ${HOSTILE}` }])
    expect(JSON.parse(onTerminal('info', 'hostile.ggtrace', '--json')).attributes.command).toBe(HOSTILE)
  })
})

describe('a pipe', () => {
  test('gets CSV and JSON as they are', () => {
    const name = `${HOSTILE} ${HOSTILE}`
    expect(run([...QUERY, '--format', 'csv']).stdout).toBe(`name\n"${name}"\n`)
    expect(run([...QUERY, '--format', 'json']).stdout).toBe(`[{"name": ${JSON.stringify(name)}}]\n`)
    expect(JSON.parse(run(['info', 'hostile.ggtrace', '--json']).stdout).attributes.command).toBe(HOSTILE)
  })
})

describe('--csv-safe', () => {
  const SQL = `select '=1+1' as "=a", '+1' as b, '-1' as c, '@x' as d, char(9) || '=1' as e, char(13) || '=1' as f,
    -1 as g, 'a=1' as h, '' as i, null as j, -0.5 as k`

  test('puts a quote before what a spreadsheet takes for a formula, and before nothing else', () => {
    const { stdout } = run(['query', 'hostile.ggtrace', SQL, '--format', 'csv', '--csv-safe'])
    expect(stdout).toBe(`'=a,b,c,d,e,f,g,h,i,j,k\n'=1+1,'+1,'-1,'@x,'\t=1,"'\r=1",-1,a=1,"",,-0.5\n`)
  })

  test('is for CSV', () => {
    expect(run(['query', 'hostile.ggtrace', SQL, '--csv-safe'])).toMatchObject({
      code: 1,
      stderr: 'error: --csv-safe: expected --format csv, found table\n',
    })
    expect(run(['query', 'hostile.ggtrace', SQL, '--format', 'csv']).stdout).toMatch(/^=a,b.*\n=1\+1,\+1/)
  })
})

describe('why', () => {
  const plain = (text: string) => text.replaceAll(`${ESC}[1m`, '').replaceAll(`${ESC}[0m`, '')
  const words = (text: string) => text.split(/\s+/).join(' ').trim()

  terminalTest.each([40, 80, 200])(
    'is wrapped to a terminal of %d columns, bold where it matters; the words are the same',
    (width) => {
      copyFileSync(join(dirname(dirname(CLI)), 'examples/llama.ggtrace.gz'), at('run.gz'))
      const { stdout } = run(['why', 'run.gz'])
      expect(stdout).not.toContain(ESC)
      expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeGreaterThan(200)
      const shown = onTerminalAfter(`stty cols ${width}`, 'why', 'run.gz').replaceAll('\r', '')
      const lines = plain(shown).split('\n')
      expect(lines.filter((line) => line.length > width)).toEqual([])
      expect(words(lines.join('\n'))).toBe(words(stdout))
      expect(shown).toContain(`${ESC}[1m1. worker 0 was preempted`)
      const uncoloured = onTerminalAfter(`stty cols ${width}; export NO_COLOR=1`, 'why', 'run.gz')
      expect(uncoloured.replaceAll('\r', '')).toBe(lines.join('\n'))
    },
  )

  test('SQL only where it is asked for', () => {
    expect(run(['why', 'run.gz']).stdout).not.toMatch(/select|ggml2perfetto query/)
    expect(run(['why', 'run.gz', '--checks']).stdout).toMatch(
      / {3}check of preempted: ggml2perfetto query run\.gz "select sum/,
    )
  })
})

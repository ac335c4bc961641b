import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from '@jest/globals'
import { inLong, inParts, someOf } from '../long.ts'
import { at, COMMAND, MOE, names, quoted, read, run, shell, start, useFolder } from './helpers.ts'

useFolder()

describe('a reader that goes away (EPIPE): we end quietly, with exit code 0', () => {
  const LINES: readonly (readonly [line: string, bytes: number])[] = [
    ['$CLI $MOE -o - -q', 10],
    ['$CLI query $MOE "select * from slice"', 10],
    ['$CLI query $MOE "select * from slice, (select 1 union select 2)" --format json', 10],
    ['$CLI info $MOE', 1],
    ['$CLI --help', 0],
  ]
  inParts(test).each(someOf(LINES, 3))('%s | head -c %d', (line, bytes) => {
    const { code, stdout, stderr } = shell(`set -o pipefail; ${line} | head -c ${bytes}`)
    expect({ code, length: stdout.length, stderr }).toEqual({ code: 0, length: bytes, stderr: '' })
  })

  test('the trace is written even if nobody reads the summary', () => {
    expect(shell('set -o pipefail; $CLI $MOE -o unread.pftrace | true').code).toBe(0)
    expect(read('unread.pftrace').length).toBeGreaterThan(100_000)
  })
})

const SIGNALS = [
  ['SIGINT', 130],
  ['SIGTERM', 143],
  ['SIGHUP', 129],
] as const
inParts(describe).each(someOf(SIGNALS, 3))('%s while a log is being read', (signal, expected) => {
  test(`exit code ${expected}, nothing half-written, and the older trace stays`, async () => {
    writeFileSync(at('slow.pftrace'), 'older')
    const before = names()
    const child = start(['-', '-o', 'slow.pftrace', '--force'])
    let stderr = ''
    child.stderr.on('data', (text) => {
      stderr += text
    })
    child.stdin.on('error', () => {}) // it ends before it has read all
    child.stdin.write(readFileSync(MOE).subarray(0, 300_000))
    while (names().length === before.length) await sleep(50)
    expect(names().length).toBe(before.length + 1)
    child.kill(signal)
    const [code] = await once(child, 'close') // and its outputs
    expect({ code, stderr }).toEqual({ code: expected, stderr: 'interrupted: no trace was written\n' })
    expect(names()).toEqual(before)
    expect(String(read('slow.pftrace'))).toBe('older')
  })
})

test('a log that comes in small pieces with pauses', async () => {
  const child = start(['-', '-o', 'pieces.pftrace', '-q'])
  const log = readFileSync(MOE)
  for (const [from, to] of [
    [0, 1],
    [1, 3],
    [3, 5000],
    [5000, 5001],
    [5001, log.length],
  ]) {
    child.stdin.write(log.subarray(from, to))
    await sleep(20)
  }
  child.stdin.end()
  expect((await once(child, 'exit'))[0]).toBe(0)
  run([MOE, '-o', 'whole.pftrace'])
  expect(read('pieces.pftrace').equals(read('whole.pftrace'))).toBe(true)
})

test('an input that fails does not wait for a pipe that stays open', async () => {
  const child = start(['-', '-o', 'x.pftrace'])
  child.stdin.on('error', () => {})
  child.stdin.write('x'.repeat(10_000))
  expect((await once(child, 'exit'))[0]).toBe(1)
})

test('standard input is a folder', () => {
  expect(shell('$CLI - < .').stderr).toBe('error: standard input: cannot read: is a directory\n')
})

/** Is there `script`, which gives a program a terminal? */
const hasScript = ((): boolean => {
  try {
    return execFileSync('script', ['-qec', 'true', '/dev/null'], { stdio: 'pipe' }) !== undefined
  } catch {
    return false
  }
})()

/** The run again and again, one after the other. */
function longLog(times: number): string {
  const [header, ...rows] = readFileSync(MOE, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => line.split(','))
  const [first, last] = [Number(rows[0]![1]), Number(rows.at(-1)![1])]
  const copies = Array.from({ length: times }, (_, i) =>
    rows.map(([id, ts, ...rest]) => [id, Number(ts) + i * (last - first + 1000), ...rest].join(',')).join('\n'),
  )
  return [header!.join(','), ...copies, ''].join('\n')
}

describe('on a terminal', () => {
  const onTerminal = hasScript ? test : test.skip
  const typed = (args: string) => shell(`script -qec "${COMMAND} ${args}" /dev/null < /dev/null`)

  onTerminal('a trace is not written there (needs script)', () => {
    expect(typed(`${quoted(MOE)} -o -`).stdout).toMatch(
      /error: a trace is binary: not written to a terminal\r\nhint: -o <file>/,
    )
  })

  inLong(onTerminal)('a long conversion shows a bar, not with --quiet (needs script)', () => {
    writeFileSync(at('long.csv'), longLog(80))
    expect(typed('long.csv -o long.pftrace').stdout).toMatch(/reading .* of 3\d\.\d MiB/)
    expect(typed('long.csv -o long.pftrace -q').stdout).not.toMatch('reading')
  })
})

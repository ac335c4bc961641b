import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { at, MOE, read, run, useFolder } from './helpers.ts'

/** Chrome's JSON by the command line. */

useFolder()

beforeAll(() => {
  run([MOE, '--to', 'json'])
})

describe('--to json', () => {
  test('writes <input>.json, which parses', () => {
    const { code, stdout, stderr } = run([MOE, '--to', 'json'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(
      /^wrote moe\.csv\.json \(.*\): drag it into chrome:\/\/tracing or https:\/\/ui\.perfetto\.dev, or: ggml2perfetto open/m,
    )
    const { traceEvents, metadata } = JSON.parse(String(read('moe.csv.json')))
    expect(metadata).toMatchObject({ format: 'profinfer-csv', operators: 2664 })
    expect(traceEvents.filter(({ cat }: { cat?: string }) => cat === 'operator')).toHaveLength(2664)
  })

  test('is taken from the name of the output', () => {
    expect(run([MOE, '-o', 'named.json']).code).toBe(0)
    expect(read('named.json').equals(read('moe.csv.json'))).toBe(true)
    expect(run([MOE, '-o', 'other.json', '--to', 'perfetto']).code).toBe(0)
    expect(read('other.json')[0]).toBe(0x0a)
    expect(run([MOE, '-o', 'named.pftrace', '--to', 'json']).code).toBe(0)
    expect(read('named.pftrace').equals(read('named.json'))).toBe(true)
  })

  test('through pipes the same', () => {
    const { code, bytes, stderr } = run(['-', '-o', '-', '--to', 'json'], { input: readFileSync(MOE) })
    expect({ code, same: bytes.equals(read('moe.csv.json')) }).toEqual({ code: 0, same: true })
    expect(stderr).toMatch(/^decode 637 tok\/s; .*\nstdin: 9 calls/)
  })

  test('the next command, as the summary prints it, works', () => {
    const next = /^next: ggml2perfetto query (\S+) "(.*)"$/m.exec(run([MOE, '--to', 'json']).stdout)!
    expect(next[1]).toBe('moe.csv.json')
    const fromJson = run(['query', next[1]!, next[2]!])
    expect(fromJson.code).toBe(0)
    expect(fromJson.stdout).toBe(run(['query', MOE, next[2]!]).stdout)
  })

  test('another kind is an error that lists the kinds, and nothing is written', () => {
    const { code, stderr } = run([MOE, '--to', 'xml', '-o', 'out.xml'])
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringContaining('--to "xml": expected perfetto or json'),
    })
    expect(existsSync(at('out.xml'))).toBe(false)
  })

  test('--strict leaves no half-written JSON behind', () => {
    writeFileSync(at('cut.csv'), readFileSync(MOE).subarray(0, 200_000))
    expect(run(['cut.csv', '--to', 'json', '--strict']).code).toBe(1)
    expect(existsSync(at('cut.csv.json'))).toBe(false)
  })
})

describe('such a file', () => {
  test('is checked, from a file, gzip and stdin', () => {
    const text = /^\S+: \d+ \d{3} events, [\d.]+ MiB: complete; trace_processor imports it without errors\n$/
    writeFileSync(at('moe.json.gz'), gzipSync(read('moe.csv.json')))
    for (const outcome of [
      run(['check', 'moe.csv.json']),
      run(['check', 'moe.json.gz']),
      run(['check', '-'], { input: read('moe.csv.json') }),
    ]) {
      expect(outcome).toMatchObject({ code: 0, stdout: expect.stringMatching(text) })
    }
  })

  test('that was cut is found out', () => {
    writeFileSync(at('cut.json'), read('moe.csv.json').subarray(0, -3000))
    const { code, stderr } = run(['check', 'cut.json'])
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(
        /^error: cut\.json: truncated after \d+ \d+ events, .*: event \d+, byte \d+: the file/,
      ),
    })
  })

  test('is told from a log', () => {
    // It is both: Chrome's JSON is converted as PyTorch's is, whoever wrote it.
    expect(run(['info', 'moe.csv.json'])).toMatchObject({ code: 0, stdout: expect.stringContaining('chrome-json') })
    expect(run(['check', MOE])).toMatchObject({ code: 1, stderr: expect.stringContaining('is a log, not a trace') })
  })
})

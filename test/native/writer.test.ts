import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { at, canMount, useFolder, withMount } from '../cli/helpers.ts'
import { inParts, isLong } from '../long.ts'
import { endOf, eventCount, Kind, type Log, operatorsOf, problemsOf, readLog, recordsOf } from './log-checker.ts'
import { makeNative } from './recording.ts'

/**
 * The log's writer, native/log/: the programs of native/test are built and run, and what they wrote is read by
 * log-checker.ts. `make -C native test` runs them under sanitizers and valgrind as well.
 */

const NATIVE = fileURLToPath(new URL('../../native', import.meta.url))
const BUILD = join(NATIVE, 'build/tests')
const hasCompiler =
  process.platform === 'linux' && ['cc', 'make'].every((tool) => spawnSync(tool, ['--version']).status === 0)
const withCompiler = hasCompiler ? describe : describe.skip

useFolder()

const torture = (name: string, path: string, ...more: string[]) => {
  const { status, signal, stderr } = spawnSync(join(BUILD, 'torture'), [name, path, ...more], { encoding: 'utf8' })
  expect({ status, signal, stderr }).toEqual({ status: 0, signal: null, stderr: '' })
  return readLog(readFileSync(path))
}

/** `tensor` of the operators of one writer, in order. */
const tensorsOf = (log: Log, writer: number) =>
  log.blocks
    .filter((block) => block.writer === writer && block.kind === Kind.events)
    .flatMap((block) => operatorsOf(log, block))
    .map(({ tensor }) => tensor)

const isCountingUp = (numbers: readonly number[]) => numbers.every((number, i) => number === numbers[0]! + i)

/** The names that have been defined before serial `needs`, by id. */
const nameIds = (log: Log) => {
  const serials = new Map<number, number>()
  for (const block of log.blocks.filter(({ kind }) => kind === Kind.definitions)) {
    for (const [i, { offset }] of block.records.entries()) {
      serials.set(log.view.getUint32(offset + 4, true), block.needs + i)
    }
  }
  return serials
}

withCompiler('the writer in C (needs cc, make and Linux)', () => {
  beforeAll(() => {
    makeNative(...['clock', 'counters', 'torture', 'write_all'].map((name) => `build/tests/${name}`))
  })

  test('has a clock that keeps to CLOCK_MONOTONIC, whatever the counter does', () => {
    expect(execFileSync(join(BUILD, 'clock'), { encoding: 'utf8' })).toBe('')
  })

  test('reads counters, and what the kernel says of registers', () => {
    expect(execFileSync(join(BUILD, 'counters'), [at('counters.ggtrace')], { encoding: 'utf8' })).toBe('')
  })

  test('writes every kind of record', () => {
    const path = at('all.ggtrace')
    execFileSync(join(BUILD, 'write_all'), [path])
    const log = readLog(readFileSync(path))
    expect(problemsOf(log)).toEqual([])
    const types = new Set(log.blocks.flatMap(({ records }) => records.map(({ type }) => type)))
    const ranges = [range(1, 3), range(16, 27), [29], range(32, 50), range(52, 61), range(71, 74)]
    expect([...types].sort((a, b) => a - b)).toEqual(ranges.flat())
    expect(log.blocks.filter(({ isOpen }) => isOpen)).toEqual([])
    expect(endOf(log)).toEqual({ written: eventCount(log), dropped: 0 })
    const lastRun = log.blocks.filter(({ kind }) => kind === Kind.run).at(-1)!
    expect(lastRun.records.map(({ type }) => type)).toEqual([3])
  })

  test('writes the same records each time', () => {
    const runs = ['one.ggtrace', 'two.ggtrace'].map((name) => {
      execFileSync(join(BUILD, 'write_all'), [at(name)])
      const log = readLog(readFileSync(at(name)))
      return log.blocks
        .filter(({ kind }) => kind !== Kind.run)
        .map(({ tid: _tid, base, kind, offset: _offset, records, ...rest }) => ({
          ...rest,
          base: kind === Kind.events ? base : 0n,
          records: records.map(({ offset, size }) =>
            Buffer.from(log.view.buffer, log.view.byteOffset + offset, size).toString('hex'),
          ),
        }))
    })
    expect(runs[0]).toEqual(runs[1])
  })

  test('64 threads, each in many segments of one page', () => {
    const log = torture('hammer', at('hammer.ggtrace'))
    expect(problemsOf(log)).toEqual([])
    expect(log.blocks.filter(({ isOpen }) => isOpen)).toEqual([])
    const operators = range(0, 63).reduce((sum, ith) => sum + 20 * (100 + ith), 0)
    expect(recordsOf(log, 32).length + recordsOf(log, 71).length).toBe(operators)
    expect(recordsOf(log, 41).length).toBe(64 * 20 * 2)
    expect(recordsOf(log, 16).length).toBe(64 * 20)
    expect(endOf(log)).toEqual({ written: eventCount(log), dropped: 0 })
    const serials = nameIds(log)
    const early = log.blocks
      .filter(({ kind }) => kind === Kind.events)
      .flatMap(({ needs, records }) =>
        records.filter(
          ({ type, offset }) => type === 41 && serials.get(log.view.getUint32(offset + 20, true))! >= needs,
        ),
      )
    expect(early).toEqual([])
  })

  test('a ring has the last records of every writer, and says since when it has all of them', () => {
    const log = torture('ring', at('ring.ggtrace'))
    expect(problemsOf(log)).toEqual([])
    expect(log.view.byteLength).toBeLessThanOrEqual((1 << 20) + 9 * (16 << 10))
    const from = log.view.getBigUint64(48, true)
    expect(from).toBeGreaterThan(log.blocks[1]!.base)
    for (const worker of range(0, 7)) {
      const own = log.blocks.filter((block) => block.worker === worker && block.kind === Kind.events)
      const tensors = tensorsOf(log, own[0]!.writer)
      expect(isCountingUp(tensors)).toBe(true)
      expect(tensors.at(-1)).toBe(2000 * (worker % 2 ? 1 : 40) - 1)
      // A writer that lost blocks had them before: the block that is its first now begins in time.
      if (own[0]!.sequence > 0) expect(own[0]!.base).toBeLessThanOrEqual(from)
    }
    expect(log.blocks.some(({ kind, sequence }, i) => kind === Kind.events && sequence > 0 && i > 0)).toBe(true)
    expect(recordsOf(log, 16)).toHaveLength(8 * 100)
    // And CURSOR records, where the clock went back.
    expect(endOf(log)!.written).toBeGreaterThanOrEqual(2000 * 4 * 41)
    expect(endOf(log)!.dropped).toBe(0)
  })

  test('odd times, odd sizes, no log, a closed log, paths that cannot be had', () => {
    const log = torture('edges', at('edges.ggtrace'))
    expect(problemsOf(log)).toEqual([])
    const end = 50e9 + 2 ** 24 + 2 ** 20 - 2
    expect(recordsOf(log, 45).length).toBe(1)
    const events = log.blocks.filter(({ kind }) => kind === Kind.events)
    expect(events.flatMap((block) => operatorsOf(log, block))).toEqual([
      { type: 71, tensor: 1, start: 10e9, compute: 5, wait: 4 },
      { type: 71, tensor: 2, start: 9e9, compute: 5, wait: 4 },
      { type: 73, tensor: 3, start: 20e9, compute: 5, wait: 4 },
      { type: 45, tensor: 4, start: 20e9 + 9, compute: 10e9 - 9, wait: 1e9 },
      { type: 32, tensor: 5, start: 31e9, compute: 2 ** 32 - 1, wait: 2 ** 32 - 1 },
      { type: 71, tensor: 6, start: 50e9, compute: 0, wait: 0 },
      { type: 71, tensor: 2 ** 20 - 1, start: 50e9, compute: 2 ** 24 - 1, wait: 2 ** 20 - 1 },
      { type: 32, tensor: 2 ** 20, start: end, compute: 1, wait: 0 },
      { type: 32, tensor: 7, start: end + 1, compute: 2 ** 24, wait: 0 },
      { type: 32, tensor: 8, start: end + 1 + 2 ** 24, compute: 0, wait: 2 ** 20 },
    ])
    const experts = recordsOf(log, 38).map(({ offset, size }) => {
      const tokens = log.view.getUint32(offset + 16, true)
      expect(size).toBe(28 + 4 * tokens * log.view.getUint32(offset + 20, true))
      return range(0, tokens * 100 - 1).map((i) => log.view.getInt32(offset + 28 + 4 * i, true))
    })
    expect(experts.length).toBeGreaterThan(1)
    expect(experts.flat()).toEqual(range(0, 99_999))
    expect(recordsOf(log, 44).length).toBe(1)
    const nodes = recordsOf(log, 22).flatMap(({ offset }) =>
      range(0, log.view.getUint32(offset + 12, true) - 1).map((i) => log.view.getUint32(offset + 16 + 4 * i, true)),
    )
    expect(nodes).toEqual(range(1, 50_000))
    const { offset } = recordsOf(log, 16)[0]!
    const text = Buffer.from(log.view.buffer, log.view.byteOffset + offset + 12, log.view.getUint32(offset + 8, true))
    expect(text.toString()).toBe('✓'.repeat(1024))
  })

  inParts(test)('kill -9 at any moment leaves whole records, and all that was sealed', async () => {
    for (let i = 0; i < (isLong ? 100 : 10); i++) {
      const path = at('killed.ggtrace')
      const child = spawn(join(BUILD, 'torture'), ['endless', path], { stdio: ['ignore', 'pipe', 'inherit'] })
      let told = ''
      child.stdout.setEncoding('latin1').on('data', (text: string) => {
        told += text
      })
      await once(child.stdout, 'data')
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 12))
      child.kill('SIGKILL')
      await once(child, 'close')
      expectWhole(readLog(readFileSync(path)), told)
    }
  })

  test('a forked child writes nothing, with and without ggtrace_abandon', () => {
    const log = torture('fork', at('fork.ggtrace'))
    expect(problemsOf(log)).toEqual([])
    expect(tensorsOf(log, 1)).toEqual(range(1, 300))
    expect(endOf(log)).toEqual({ written: 300, dropped: 0 })
    expect(recordsOf(log, 16)).toEqual([])
  })

  test('closes while threads write', () => {
    const log = torture('close', at('close.ggtrace'))
    expect(problemsOf(log)).toEqual([])
    expect(log.blocks.filter(({ isOpen }) => isOpen)).toEqual([])
    expect(endOf(log)!.written).toBe(eventCount(log))
    expect(endOf(log)!.written).toBeGreaterThan(1000)
    for (const writer of range(1, 8)) expect(isCountingUp(tensorsOf(log, writer))).toBe(true)
  })

  test('a file that may not grow (RLIMIT_FSIZE) is no SIGXFSZ', () => {
    const log = torture('limit', at('limit.ggtrace'))
    expect(problemsOf(log)).toEqual([])
    expect(log.view.byteLength).toBeLessThanOrEqual(1 << 20)
    const end = endOf(log)!
    expect(end.written).toBe(eventCount(log))
    expect(end.written + end.dropped).toBe(400_000)
  })

  const onTmpfs = canMount() ? test : test.skip
  onTmpfs('a full disk (needs mount) is no SIGBUS, and the log goes on when there is room again', () => {
    withMount('disk', 'size=2m', () => {
      writeFileSync(at('disk/filler'), new Uint8Array(1 << 20))
      const log = torture('full', at('disk/log'), at('disk/filler'))
      expect(problemsOf(log)).toEqual([])
      const [loss] = recordsOf(log, 44)
      const end = endOf(log)!
      expect(log.view.getUint32(loss!.offset + 12, true)).toBe(end.dropped)
      const tensors = tensorsOf(log, 1)
      const before = tensors.length - 1000
      expect(tensors).toEqual([...range(1, before), ...range(400_001, 401_000)])
      expect(before + end.dropped).toBe(400_000)
    })
  })
})

const range = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, i) => first + i)

/** A killed run's log: nothing torn but the open blocks' last record; `told` lines are "writer sealed records". */
function expectWhole(log: Log, told: string) {
  // Killed between a header's fields and its magic number, a writer leaves a header that does not count.
  const inHeaders = problemsOf(log).filter((problem) => !/^(8|16|24|32|40|48) bytes/.test(problem))
  expect(inHeaders).toEqual([])
  expect(endOf(log)).toBeUndefined()
  const sealed = new Map(
    told
      .split('\n')
      .slice(0, -1)
      .map((line) => line.split(' ').map(Number) as [number, number]),
  )
  expect(sealed.size).toBeGreaterThan(0)
  for (const [writer, records] of sealed) {
    const blocks = log.blocks.filter((block) => block.writer === writer && !block.isOpen)
    expect(blocks.reduce((sum, block) => sum + block.records.length, 0)).toBeGreaterThanOrEqual(records)
    const tensors = tensorsOf(log, writer)
    // Of a writer that has sealed nothing, the first record may be torn.
    if (records > 0 || tensors.length > 0) expect(tensors[0]).toBe(1)
    expect(isCountingUp(tensors)).toBe(true)
  }
}

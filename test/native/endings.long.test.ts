import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { constants } from 'node:os'
import { dirname } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { hasLlama } from '../llama/testbed.ts'
import { endingOf, type Run, runnerOf, TIMEOUT_MS, WAYS } from './endings.ts'
import { NANO, newLog, RECORDER, readLog, useRecorder } from './recording.ts'

/** A recorded program ends as it does without the recorder: the same exit status or signal, the same output, a log. */

/** How often each is run: `ENDINGS=20 npm run test:long -- test/native/endings`. */
const TIMES = Number(process.env['ENDINGS'] ?? 1)
const RECORDINGS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'level op': { GGML2PERFETTO_LEVEL: 'op' },
  'level graph': { GGML2PERFETTO_LEVEL: 'graph' },
  'level token': { GGML2PERFETTO_LEVEL: 'token' },
  'counters and a ring': {
    GGML2PERFETTO_COUNTERS: 'page-faults,context-switches,cpu-clock',
    GGML2PERFETTO_RING: '1',
    GGML2PERFETTO_MAX_BYTES: `${1 << 20}`,
  },
}

/** Limits of a file's size (RLIMIT_FSIZE) in which a log has no header, only a part of one, no block, a few, and one for each writer. */
const FILE_LIMITS = [0, 1, 47, 48, 63, 64, 4095, 4096, 16_384, 40_000, 100_000]

/** The sizes to which another program truncates the log: nothing, not even its first word, one page of it, a part of a writer's. */
const TRUNCATED_TO = [0, 1, 4096, 20_000]

/** What a program does again and again: 2 000 contexts, 200 models. Each takes 20 KB if the graphs of those before are kept. */
const MANY = ['contexts', 'models'] as const
const MORE_KB_AT_MOST = 2 << 10

const llama = hasLlama() ? describe : describe.skip

llama('endings of a recorded program', () => {
  useRecorder()
  /**
   * Of 100 exits of this program 1 to 20 end by SIGSEGV, with the recorder up to 40: ggml's objects are destroyed while threads compute, for about 150 µs
   * with and without the recorder, whose log is closed before (`objects of …`). How many compute then depends on the machine. None faults in the recorder.
   */
  const BESIDE_THREADS = 'exit beside threads'
  const RUNS = Math.max(5, TIMES)

  let run: Run
  /** Without the recorder: once for all recordings. */
  const plains = new Map<string, ReturnType<Run>>()
  const runPlain = (way: string, before: readonly string[] = []) => {
    const key = [...before, way].join(' ')
    const plain = plains.get(key) ?? run(way, {}, before)
    plains.set(key, plain)
    return plain
  }
  const longest = new Map<string, number>()

  beforeAll(async () => {
    run = await runnerOf(NANO)
  })

  afterAll(() => {
    if (TIMES > 1)
      console.log([...longest].map(([way, ms]) => `${way}: at most ${Math.round(ms)} ms longer`).join('\n'))
  })

  describe.each(Object.entries(RECORDINGS))('%s', (_recording, env) => {
    test.each(WAYS)(
      '%s',
      async (way, calls) => {
        const plain = await runPlain(way)
        for (let i = 0; i < TIMES; i++) {
          const log = newLog()
          mkdirSync(dirname(log), { recursive: true })
          const traced = await run(way, { ...env, LD_PRELOAD: RECORDER, GGML2PERFETTO_OUT: log })
          expect(endingOf(traced)).toEqual(endingOf(plain))
          const { of } = await readLog(log)
          expect(of('token').length).toBe(calls)
          const facts = Object.assign({}, ...of('facts').map(({ attributes }) => attributes))
          const saysThatStatesEnd = way.startsWith('chroot') && env['GGML2PERFETTO_LEVEL'] !== 'token'
          expect('states.end' in facts).toBe(saysThatStatesEnd)
          longest.set(way, Math.max(longest.get(way) ?? 0, traced.ms - plain.ms))
        }
      },
      TIMEOUT_MS * 2 * TIMES,
    )

    test.each(FILE_LIMITS)('return, files of at most %i bytes', async (limit) => {
      const before = ['prlimit', `--fsize=${limit}`]
      const log = newLog()
      mkdirSync(dirname(log), { recursive: true })
      const report = `${log}.report`
      writeFileSync(report, Buffer.alloc(1 << 20)) // more than a report has
      const recording = { GGML2PERFETTO_OUT: log, GGML2PERFETTO_REPORT: report }
      const plain = await runPlain('return', before)
      const traced = await run('return', { ...env, LD_PRELOAD: RECORDER, ...recording }, before)
      expect(plain.code).toBe(3)
      expect(endingOf(traced)).toEqual(endingOf(plain))
      const isOpened = existsSync(log)
      expect(readFileSync(report, 'latin1').startsWith(`${constants.errno.EFBIG} `)).toBe(!isOpened)
      if (isOpened) expect((await readLog(log)).issues.join()).toMatch(/limit for the size of files|^$/)
    })

    test.each(TRUNCATED_TO)('return, the log is truncated to %i bytes', async (bytes) => {
      const way = `truncate ${bytes}`
      const log = newLog()
      mkdirSync(dirname(log), { recursive: true })
      const plain = await runPlain(way)
      const traced = await run(way, { ...env, LD_PRELOAD: RECORDER, GGML2PERFETTO_OUT: log })
      expect(plain.code).toBe(3)
      expect(endingOf(traced)).toEqual(endingOf(plain))
      const { of, issues } = await readLog(log)
      expect(issues.join()).toMatch(/the log was truncated while it was recorded/)
      // The page that remains of 20 000 bytes is written to until the end.
      if (bytes <= 4096) expect(of('token').length).toBe(0)
    })

    test('more contexts at once than the recorder has room for', async () => {
      const log = newLog()
      mkdirSync(dirname(log), { recursive: true })
      const plain = await runPlain('contexts at once')
      const traced = await run('contexts at once', { ...env, LD_PRELOAD: RECORDER, GGML2PERFETTO_OUT: log })
      expect(endingOf(traced)).toEqual(endingOf(plain))
      expect((await readLog(log)).issues.join()).toMatch(/lost: states of contexts: .* is full/)
    })

    test.each(MANY)('the memory of %s, one after the other', async (way) => {
      const log = newLog()
      mkdirSync(dirname(log), { recursive: true })
      const plain = await runPlain(way)
      const traced = await run(way, { ...env, LD_PRELOAD: RECORDER, GGML2PERFETTO_OUT: log })
      expect([plain.code, traced.code]).toEqual([3, 3])
      const [less, more] = [plain, traced].map(({ output }) => Number(/^(-?\d+) KB more$/m.exec(output)?.[1]))
      expect(more! - less!).toBeLessThanOrEqual(MORE_KB_AT_MOST)
    })

    test(
      BESIDE_THREADS,
      async () => {
        let failures = 0
        for (let i = 0; i < RUNS; i++) {
          const log = newLog()
          mkdirSync(dirname(log), { recursive: true })
          const traced = await run(BESIDE_THREADS, { ...env, LD_PRELOAD: RECORDER, GGML2PERFETTO_OUT: log })
          expect([3, 'SIGSEGV']).toContain(traced.code ?? traced.signal)
          expect(traced.output).not.toContain(`a fault in ${RECORDER}`)
          if (traced.code !== 3) failures++
          const { of, issues } = await readLog(log)
          expect(of('token').length).toBeGreaterThan(2)
          // What the threads did while the log was being closed is counted.
          const others = issues.filter((issue) => !issue.startsWith('dropped records'))
          if (traced.code === 3) expect(others).toEqual([])
        }
        if (TIMES > 1) console.log(`${BESIDE_THREADS}, of ${RUNS}: ${failures} by SIGSEGV`)
      },
      TIMEOUT_MS * RUNS,
    )
  })
})

import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { cc } from '../compile.ts'
import { ensureLlama, hasLlama, LIB } from '../llama/testbed.ts'
import { buildRecorder, RECORDER, readLog } from './recording.ts'

/** Drivers of Vulkan that lack what others have: a driver of our own, which behaves as it is asked to. */
const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-vulkan-drivers-'))
const drivers = hasLlama() ? describe : describe.skip
const NATIVE = fileURLToPath(new URL('../../native', import.meta.url))
const SUBMISSIONS = 8 // and one after the burst
/** Command buffers that can be timed before one of them is complete: the recorder's pools of queries. */
const CHUNKS = 64 * 16

async function record(bits: number, isCalibrated: boolean, burst = 0, work = '', driverEnv = {}) {
  const log = join(folder, `${bits}-${isCalibrated}-${burst}${work}.ggtrace`)
  const args = [bits, Number(isCalibrated), burst, work].map(String)
  const env = { ...process.env, ...driverEnv, LD_PRELOAD: RECORDER, GGML2PERFETTO_OUT: log }
  const { stdout, status } = spawnSync(join(folder, 'program'), args, { env, encoding: 'utf8' })
  expect(status).toBe(0)
  const { of, text, issues } = await readLog(log)
  const apis = (name: string) => of('api').filter((call) => text(call.name) === name)
  const submissions = new Map(apis('vkQueueSubmit').map((call) => [call.correlation, call]))
  /** Work whose times are not in the call that submitted it, and ran it. */
  const outside = of('gpu').filter(({ correlation, startNs, endNs }) => {
    const { startNs: fromNs, endNs: toNs } = submissions.get(correlation)!
    return startNs < fromNs - ERROR_NS || endNs > toNs + ERROR_NS
  })
  const facts = Object.assign({}, ...[...of('input'), ...of('facts')].map(({ attributes }) => attributes)) as Record<
    string,
    unknown
  >
  return { of, issues, apis, outside, facts, driver: JSON.parse(stdout) as Record<string, number> }
}

/** The driver's clock has ticks of 8 ns; the recorder's own clock is computed from the processor's counter. */
const ERROR_NS = 2000
/** How long each copy and dispatch takes at least. */
const WORK_NS = 5000

drivers('the recorder and drivers of Vulkan (needs linux-x64 and cc)', () => {
  beforeAll(async () => {
    await ensureLlama()
    buildRecorder()
    const source = fileURLToPath(new URL('vulkan-program.c', import.meta.url))
    const flags = ['-O1', `-I${NATIVE}`, source]
    // Without ggml, the recorder records no operators and copies.
    const ggml = [`-L${LIB}`, `-Wl,-rpath,${LIB}`, '-Wl,--no-as-needed', '-lggml-base']
    cc(...flags, ...ggml, '-DMODULE', '-shared', '-fPIC', '-o', join(folder, 'libfakevulkan.so'))
    cc(...flags, `-L${folder}`, `-Wl,-rpath,${folder}`, '-lfakevulkan', '-o', join(folder, 'program'))
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  test.each([
    [24, 'every 134 ms'],
    [22, 'every 34 ms, and each 25 ms between two readings are more than half of it'],
  ])(
    'timestamps of %i bits wrap around %s; two queues; functions of extensions; queries are reset in commands',
    async (bits) => {
      const { of, issues, apis, outside, facts, driver } = await record(bits, true)
      expect(issues).toEqual([])
      expect(of('gpu').map(({ what }) => what)).toEqual(Array(SUBMISSIONS + 1).fill('graph'))
      expect(outside).toEqual([])
      expect(new Set(of('gpu').map(({ queue }) => queue)).size).toBe(2)
      expect(apis('vkWaitSemaphores')).toHaveLength(SUBMISSIONS)
      expect(apis('vkWaitForFences')).toHaveLength(SUBMISSIONS + 1)
      expect(Number(facts['gpu_clock_error_ns'])).toBeLessThan(ERROR_NS)
      expect(driver).toMatchObject({ resetsByHost: 0, poolsLeft: 0 })
    },
  )

  test('without calibrated timestamps: submissions and waits, and the reason', async () => {
    const { of, issues, apis, facts } = await record(64, false)
    expect(issues).toEqual([])
    expect(of('gpu')).toEqual([])
    expect(apis('vkQueueSubmit').map(({ launched }) => launched)).toEqual(Array(SUBMISSIONS + 1).fill(0))
    expect(facts['gpu.missing']).toMatch(/VK_EXT_calibrated_timestamps/)
  })

  test('work that follows other work begins at its end; after work that is not timed, at the end of that', async () => {
    const { of, issues, outside } = await record(64, true, 0, 'ccdc')
    expect(issues).toEqual([])
    expect(outside).toEqual([])
    const copies = of('gpu').filter(({ what }) => what !== 'graph')
    expect(copies).toHaveLength(3 * (SUBMISSIONS + 1))
    for (let i = 0; i < copies.length; i += 3) {
      const [first, second, third] = copies.slice(i, i + 3)
      expect(second!.startNs).toBe(first!.endNs)
      expect(third!.startNs - second!.endNs).toBeGreaterThan(WORK_NS - ERROR_NS)
      for (const { startNs, endNs } of [first!, second!, third!])
        expect(endNs - startNs).toBeGreaterThan(WORK_NS - ERROR_NS)
    }
  })

  test('more command buffers at once than there are queries for are counted as lost, and later ones are timed', async () => {
    const burst = CHUNKS + 100
    const { of, issues, apis, outside } = await record(64, true, burst)
    expect(apis('vkQueueSubmit')).toHaveLength(SUBMISSIONS + burst + 1)
    expect(of('gpu')).toHaveLength(SUBMISSIONS + CHUNKS + 1)
    expect(outside).toEqual([])
    expect(issues).toEqual([expect.stringMatching(/100 records were lost: work of a GPU/)])
  })

  test('a driver without pools of queries: all work is counted as lost, and no memory is reserved for it', async () => {
    const without = { FAKE_NO_POOLS: '1' }
    const few = await record(64, true, 0, '', without)
    const many = await record(64, true, CHUNKS, '', without)
    expect(many.of('gpu')).toEqual([])
    const lost = many.issues.map((issue) => Number(/(\d+) records? w(?:as|ere) lost: work of a GPU/.exec(issue)?.[1]))
    expect(lost.reduce((sum, count) => sum + count, 0)).toBe(SUBMISSIONS + CHUNKS + 1)
    // The program's own command buffers, and what the recorder keeps of each submission.
    expect(many.driver['memoryKb']! - few.driver['memoryKb']!).toBeLessThan(1024)
  })
})

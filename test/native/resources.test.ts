import { execFileSync, spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { describe, expect, test } from '@jest/globals'
import { analyze } from '../../lib/index.ts'
import { inputOf } from '../../lib/node.ts'
import { hasControlGroups, withCpuLimit, withMemoryLimit } from '../control-group.ts'
import { hasLlama, model, type RunOptions, run } from '../llama/testbed.ts'
import { inLong } from '../long.ts'
import { hasTaskset, ON_CPU } from '../machine.ts'
import { inFolder, newLog, RECORDER, readLog, useRecorder } from './recording.ts'
import '../live.ts'

/** What the kernel counts of a run, and the limits that it sets. */

const canLimit = await hasControlGroups()
const llama = hasLlama() ? describe : describe.skip

llama('resources of a run (needs linux-x64 and cc)', () => {
  useRecorder()

  async function record(path: string, args: readonly string[], options: RunOptions = {}) {
    const log = newLog()
    mkdirSync(dirname(log), { recursive: true })
    const env = { GGML2PERFETTO_OUT: log, ...options.env }
    const result = await run(path, args, { ...options, preload: RECORDER, env })
    expect([result.code, result.stderr]).toEqual([0, ''])
    return log
  }

  const ARGS = ['--prompt', '2', '--decode', '5']

  test('every call and stage of loading has them; a stage has no more time than it takes', async () => {
    const log = await record((await model('tinyDense')).path, ARGS)
    const { of } = await readLog(log)
    expect(of('token')).toHaveLength(6)
    expect(of('token').every(({ resources }) => resources !== undefined)).toBe(true)
    const loading = of('function').filter(({ what }) => ['load-model', 'map', 'create-context'].includes(what))
    expect(loading.length).toBeGreaterThanOrEqual(3)
    for (const { startNs, endNs, resources } of loading) {
      expect(resources!.cpuNs).toBeGreaterThan(0)
      // The counts are read around the clock.
      expect(resources!.cpuNs + resources!.waitingNs).toBeLessThan(endNs - startNs + 1e6)
    }
    const { call_time, load } = await analyze(inputOf(log))
    const calls = of('token').filter(({ phase }) => phase === 'decode')
    expect(call_time.find(({ phase }) => phase === 'decode')!.resources).toEqual({
      calls: calls.length,
      minor_faults: calls.reduce((sum, { resources }) => sum + resources!.minorFaults, 0),
      major_faults: calls.reduce((sum, { resources }) => sum + resources!.majorFaults, 0),
      disk_bytes: calls.reduce((sum, { resources }) => sum + resources!.bytesRead, 0),
      cpu_ns: calls.reduce((sum, { resources }) => sum + resources!.processCpuNs, 0),
    })
    const whole = of('function').find(({ what }) => what === 'load-model')!.resources!
    const inside = load!.stages.filter(({ stage }) =>
      ['load-model', 'read-header', 'map', 'copy-weights'].includes(stage),
    )
    expect(inside.reduce((sum, { cpu_ns }) => sum + cpu_ns!, 0)).toBe(whole.cpuNs)
  })

  test('a file that is not in the page cache is read from the disk while it is loaded, one that is there is not', async () => {
    const { path, size } = await model('tinyDense')
    const cold = inFolder('cold.gguf')
    copyFileSync(path, cold)
    execFileSync('sync', [cold])
    // The kernel keeps pages that it just then moves or writes: asked again, until none is there.
    for (let tries = 0; tries < 50; tries++) {
      spawnSync('dd', [`of=${cold}`, 'oflag=nocache', 'conv=notrunc,fdatasync', 'count=0'], { stdio: 'ignore' })
      const { stdout } = spawnSync('fincore', ['--bytes', '--noheadings', '--output', 'RES', cold], {
        encoding: 'utf8',
      })
      if (Number(stdout) === 0) break
      await setTimeout(100)
    }
    const bytes = async () => {
      const { load } = await analyze(inputOf(await record(cold, ARGS)))
      return load!.stages.reduce((sum, { disk_bytes }) => sum + disk_bytes!, 0)
    }
    expect(await bytes()).toBeGreaterThan(0.9 * size)
    expect(await bytes()).toBeLessThan(0.1 * size)
  })

  const pinned = hasTaskset ? test : test.skip
  pinned('CPUs that it may use, and variables of OpenMP (needs taskset)', async () => {
    const env = { OMP_WAIT_POLICY: 'PASSIVE', GOMP_SPINCOUNT: '' }
    const log = await record((await model('tinyDense')).path, ARGS, { env, before: ['taskset', ...ON_CPU] })
    const { run } = await analyze(inputOf(log))
    expect(run.limits).toMatchObject({ cpus: 1 })
    const own = Object.entries(run.variables).filter(([name]) => name in env || !(name in process.env)) // others are of this machine
    expect(own).toEqual([['OMP_WAIT_POLICY', 'PASSIVE']])
    expect(run.version).toMatch(/^\d+\.\d+\.\d+/)
  })

  const limited = canLimit ? test : test.skip
  inLong(limited)('a limit of CPU time, and how often it was reached (needs a control group)', async () => {
    const { path } = await model('tinyDense')
    const limit = withCpuLimit(3000)
    const log = await record(path, ARGS, limit).finally(limit.remove)
    const { limits } = (await analyze(inputOf(log))).run
    expect(limits!.cpu_time).toBe(0.03)
    expect(limits!.throttled_share).toBeGreaterThan(0.3)
    expect(limits!.throttled_ns).toBeGreaterThan(50e6)
  })

  limited('a limit of memory (needs a control group)', async () => {
    const memory = withMemoryLimit(1 << 30)
    const log = await record((await model('tinyDense')).path, ARGS, memory).finally(memory.remove)
    expect((await analyze(inputOf(log))).run.limits).toMatchObject({ memory_bytes: 1 << 30, throttled_ns: null })
  })
})

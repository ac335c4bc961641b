import { execFileSync, spawnSync } from 'node:child_process'
import { copyFileSync, cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { measurePeaks, type Peak, type Peaks } from '../../lib/node.ts'
import { inLong } from '../long.ts'
import { CPUS, hasTaskset, ON_CPU } from '../machine.ts'
import { at, CLI, run, useFolder } from './helpers.ts'
import { canRecord, canRun, linuxTest } from './record-helpers.ts'

const HOME = dirname(dirname(CLI))
const NATIVE = join(HOME, 'native')
const NO_COMPILER = { CC: '/nonexistent/cc' }

const json = (...args: string[]) => JSON.parse(run(['peaks', '--json', ...args]).stdout) as Peaks
/** Of one CPU: half of the work. */
const ON_ONE = hasTaskset ? ['taskset', ...ON_CPU] : []
const ofOne = () => {
  const [program, ...args] = [...ON_ONE, process.execPath, CLI, 'peaks', '--json']
  return JSON.parse(execFileSync(program!, args, { env: process.env, encoding: 'utf8' })) as Peaks
}
/** The files that peaks are kept in. */
const kept = () =>
  readdirSync(at('cache/ggml2perfetto'))
    .filter((name) => name.endsWith('.json'))
    .map((name) => at(`cache/ggml2perfetto/${name}`))

useFolder()

describe('peaks', () => {
  let begun = 0
  beforeAll(() => {
    process.env['XDG_CACHE_HOME'] = at('cache')
    begun = Date.now()
    if (!canRecord) return
    const { stdout, stderr } = run(['peaks'])
    expect(stderr).toBe('building the measuring program with cc, once\n')
    expect(stdout).toMatch(/measured now, \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\n$/)
  })

  linuxTest('are there for one thread and for one on each CPU', () => {
    const { cpu, threads, readBytes, fp32Flops, int8Ops, measuredAt, cached } = json()
    expect(cpu).toMatch(/./)
    expect(threads).toBe(CPUS.length)
    expect(Date.parse(measuredAt)).toBeGreaterThanOrEqual(begun)
    expect(Date.parse(measuredAt)).toBeLessThanOrEqual(Date.now())
    expect(cached).toBe(true)
    // How one relates to all depends on who else computes at the time.
    const isPlausible = ({ one, all, byThreads, instructionSet }: Peak) =>
      byThreads.at(0)!.rate === one &&
      byThreads.at(-1)!.rate === all &&
      byThreads.at(-1)!.threads === threads &&
      [one, all].every((rate) => rate > 1e6 && rate < 1e16) &&
      instructionSet !== ''
    expect([readBytes, fp32Flops, int8Ops].map(isPlausible)).toEqual([true, true, true])
  })

  inLong(linuxTest)('are kept until they are measured afresh', () => {
    const first = json()
    expect(json()).toEqual(first)
    const fresh = json('--fresh')
    expect(fresh.cached).toBe(false)
    expect(fresh.measuredAt).not.toBe(first.measuredAt)
    expect(json()).toEqual({ ...fresh, cached: true })
  })

  linuxTest('are kept without the name of the host', () => {
    expect(kept()).toEqual([expect.stringMatching(/\/peaks-[0-9a-f]{16}\.json$/)])
    expect(Object.keys(JSON.parse(readFileSync(kept()[0]!, 'utf8')))).toEqual([
      'cpu',
      'threads',
      'readBytes',
      'fp32Flops',
      'int8Ops',
      'measuredAt',
    ])
  })

  linuxTest('are of the CPUs that may be used', () => {
    if (!hasTaskset) return
    const { threads, fp32Flops } = ofOne()
    expect([threads, fp32Flops.all]).toEqual([1, fp32Flops.one])
    expect(kept()).toHaveLength(CPUS.length === 1 ? 1 : 2)
  })

  inLong(linuxTest)('are measured anew where the file they are kept in is damaged', () => {
    const files = kept().map((name) => [name, readFileSync(name, 'utf8')] as const)
    const ways = [
      () => 'null',
      (whole: string) => whole.slice(0, -20),
      (whole: string) => whole.replace(/"all": \d+/, '"all": -1'),
    ]
    for (const damaged of ways) {
      expect([String(damaged), ofOne().cached]).toEqual([String(damaged), true])
      for (const [name, whole] of files) writeFileSync(name, damaged(whole))
      expect([String(damaged), ofOne().cached]).toEqual([String(damaged), false])
    }
    expect(ofOne().cached).toBe(true)
    for (const [name, whole] of files) writeFileSync(name, whole)
  })

  linuxTest('are shown to people', () => {
    const { code, stdout, stderr } = run(['peaks'])
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/^.+, \d+ CPUs?\n {2} +1 thread +\d+ threads? +measured with\n/)
    expect(stdout).toMatch(/\n {2}memory, read +[\d.]+ GB\/s +[\d.]+ GB\/s {3}\w/)
    expect(stdout).toMatch(/\n {2}FP32 +[\d .]+ GFLOP\/s +[\d .]+ GFLOP\/s {3}\w/)
    expect(stdout).toMatch(/\n {2}INT8 dot products +[\d .]+ GOP\/s +[\d .]+ GOP\/s {3}\w/)
    expect(stdout).toMatch(/\n {2}balance, FP32 +[\d.]+ FLOP\/byte +[\d.]+ FLOP\/byte\n/)
    expect(stdout).toMatch(/\nmeasured at [\d: -]+ UTC, and kept; --fresh measures again\n$/)
  })
})

describe('peaks that cannot be had', () => {
  const fails = (env: Record<string, string>) => {
    const { code, stdout, stderr } = run(['peaks'], { env: { XDG_CACHE_HOME: at('none'), ...env } })
    expect([code, stdout]).toEqual([1, ''])
    return expect(stderr)
  }

  linuxTest('for want of a compiler', () => {
    fails(NO_COMPILER).toMatch(
      /error: \/nonexistent\/cc: no such compiler, and for linux-\w+ the measuring program is built on the spot\nhint: install/,
    )
    fails({ CC: 'false' }).toMatch(/error: false: the measuring program cannot be built from /)
  })

  linuxTest('for want of a cache to build in', () => {
    fails({ XDG_CACHE_HOME: '/proc/x' }).toMatch(/cannot write: .*\nhint: set XDG_CACHE_HOME/)
  })

  linuxTest('for want of memory', () => {
    const line = 'ulimit -v 30000; exec "$0" "$@"'
    const [program] = execFileSync('find', [at('cache'), '-name', 'peaks'], { encoding: 'utf8' }).split('\n')
    const { status, stderr } = spawnSync('sh', ['-c', line, program!], { encoding: 'utf8' })
    expect([status, stderr]).toEqual([1, expect.stringMatching(/^peaks: .*: Cannot allocate memory\n$/)])
  })

  test('on other systems', async () => {
    await expect(measurePeaks({ env: {}, platform: 'darwin' })).rejects.toThrow(
      'peaks: runs on Linux only so far, this is macOS\nhint: ',
    )
  })
})

describe('the measuring program', () => {
  linuxTest('comes with the package, needs no compiler and no cache there', () => {
    const folder = at('package')
    const [program] = execFileSync('find', [at('cache'), '-name', 'peaks'], { encoding: 'utf8' }).split('\n')
    mkdirSync(`${folder}/dist/native/linux-${process.arch}`, { recursive: true })
    for (const name of ['dist/ggml2perfetto.js', 'dist/cli.js', 'package.json'])
      copyFileSync(`${HOME}/${name}`, `${folder}/${name}`)
    for (const name of ['dist/cli', 'dist/chunks']) cpSync(`${HOME}/${name}`, `${folder}/${name}`, { recursive: true })
    cpSync(NATIVE, `${folder}/native`, { recursive: true, filter: (path) => !path.includes('/build') })
    symlinkSync(`${HOME}/node_modules`, `${folder}/node_modules`)
    copyFileSync(program!, `${folder}/dist/native/linux-${process.arch}/peaks`)
    const [first, ...args] = [...ON_ONE, process.execPath, `${folder}/dist/ggml2perfetto.js`, 'peaks']
    const { status, stdout, stderr } = spawnSync(first!, args, {
      env: { ...process.env, ...NO_COMPILER, XDG_CACHE_HOME: '/proc/x' },
      encoding: 'utf8',
    })
    expect([status, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/measured now/)
  })

  const make = (name: string, compiler: string) => {
    const args = ['-s', '-C', NATIVE, `BUILD=${at(name)}`, `CC=${compiler}`, at(`${name}/peaks`)]
    const { status, stderr } = spawnSync('make', args, { encoding: 'utf8' })
    expect([compiler, status, stderr]).toEqual([compiler, 0, ''])
  }
  const testWith = (...tools: string[]) =>
    canRecord && tools.every((tool) => canRun(tool, '--version')) ? test : test.skip
  const ARM = 'aarch64-linux-gnu-gcc'

  testWith('make', 'gcc')('is built by gcc without a warning', () => make('gcc', 'gcc'))
  testWith('make', 'clang')('is built by clang without a warning', () => make('clang', 'clang'))
  testWith('make', ARM)('is built for arm64 without a warning', () => make('arm64', ARM))
})

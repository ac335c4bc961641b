import { execFileSync, spawnSync } from 'node:child_process'
import {
  copyFileSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { cpus } from 'node:os'
import { basename, dirname, join, relative } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { analyzeSteps, WHAT_IF_SERIES } from '../../lib/cli.ts'
import type { Analysis } from '../../lib/index.ts'
import { fileSource, measureKernels, measurePeaks, type Peak, type Peaks } from '../../lib/node.ts'
import { inLong } from '../long.ts'
import { CPUS, hasTaskset, ON_CPU, startHog } from '../machine.ts'
import { begun, runCalls } from '../read/ggtrace-logs.ts'
import { foundPeaks, PRINTS_FOUND } from './found-peaks.ts'
import { at, CLI, run, useFolder } from './helpers.ts'
import { canRecord, canRun, linuxTest, writeHashes, writeSums } from './record-helpers.ts'

const HOME = dirname(dirname(CLI))
const NATIVE = join(HOME, 'native')
const NO_COMPILER = { CC: '/nonexistent/cc' }

/** Of one CPU: half of the work. */
const ON_ONE = hasTaskset ? ['taskset', ...ON_CPU] : []
const ofOne = (...more: string[]) => {
  const [program, ...args] = [...ON_ONE, process.execPath, CLI, 'peaks', '--json', ...more]
  return JSON.parse(execFileSync(program!, args, { env: process.env, encoding: 'utf8' })) as Peaks
}
/** The package as it is installed, without its programs. */
function packageAt(name: string): string {
  const folder = at(name)
  mkdirSync(`${folder}/dist/native/linux-${process.arch}`, { recursive: true })
  for (const file of ['dist/ggml2perfetto.js', 'dist/cli.js', 'package.json'])
    copyFileSync(`${HOME}/${file}`, `${folder}/${file}`)
  for (const file of ['dist/cli', 'dist/chunks']) cpSync(`${HOME}/${file}`, `${folder}/${file}`, { recursive: true })
  cpSync(NATIVE, `${folder}/native`, { recursive: true, filter: (path) => !path.includes('/build') })
  symlinkSync(`${HOME}/node_modules`, `${folder}/node_modules`)
  return folder
}

useFolder()

/** The measuring program, where the first run has built it. */
const built = () => execFileSync('find', [at('cache'), '-name', 'peaks'], { encoding: 'utf8' }).split('\n')[0]!
/** Builds of other versions, from the latest to the oldest. */
const OLD_BUILDS = Array.from({ length: 12 }, (_, i) => `0.0.${i}-x64-${'0'.repeat(16)}`)

describe('peaks', () => {
  let [begun, ended] = [0, 0]
  let measured: Peaks
  beforeAll(() => {
    process.env['XDG_CACHE_HOME'] = at('cache')
    const days = (n: number) => new Date(Date.now() - n * 24 * 3600e3)
    for (const [i, name] of [...OLD_BUILDS, 'other'].entries()) {
      const folder = at(`cache/ggml2perfetto/${name}`)
      mkdirSync(folder, { recursive: true })
      utimesSync(folder, days(i < 2 ? 1 : 10 + i), days(i < 2 ? 1 : 10 + i))
    }
    if (!canRecord) return
    begun = Date.now()
    const { stdout, stderr } = run(['peaks', '--json'])
    ended = Date.now()
    expect(stderr).toBe('building the measuring program with cc, once\n')
    measured = JSON.parse(stdout) as Peaks
  })

  linuxTest('are there for one thread and for one on each CPU', () => {
    const { cpu, cpus, threads, read_bytes, fp32_flops, int8_ops, load_share, measured_at, cached } = measured
    expect([cpu, cached]).toEqual([expect.stringMatching(/./), false])
    expect(threads).toBe(CPUS.length)
    expect(cpus).toBeGreaterThanOrEqual(threads)
    expect(load_share).toBeGreaterThanOrEqual(0)
    expect(Date.parse(measured_at)).toBeGreaterThanOrEqual(begun)
    expect(Date.parse(measured_at)).toBeLessThanOrEqual(ended)
    // How one relates to all depends on who else computes at the time.
    const isPlausible = ({ one, all, by_threads, instruction_set }: Peak) =>
      by_threads.at(0)!.rate === one &&
      by_threads.at(-1)!.rate === all &&
      by_threads.at(-1)!.threads === threads &&
      by_threads.every(({ rate, median }) => median <= rate) &&
      [one, all].every((rate) => rate > 1e6 && rate < 1e16) &&
      instruction_set !== ''
    expect([read_bytes, fp32_flops, int8_ops].map(isPlausible)).toEqual([true, true, true])
  })

  linuxTest('are built in a cache with the latest eight builds, and none that is older than a week', () => {
    const names = readdirSync(at('cache/ggml2perfetto'))
    const left = names.filter((name) => name.startsWith('0.0.'))
    expect(left.sort()).toEqual(OLD_BUILDS.slice(0, left.length).sort())
    expect([left.length <= 8, left.length >= 6, names.includes('other')]).toEqual([true, true, true])
  })

  inLong(linuxTest)('beside load are disturbed, and not kept', () => {
    if (!hasTaskset) return
    const hog = startHog()
    try {
      const { load_share, disturbed, cached } = ofOne('--fresh')
      expect(load_share).toBeGreaterThan(0.2)
      expect([disturbed, cached]).toEqual([expect.stringMatching(/^others took \d+ % of these CPUs/), false])
    } finally {
      hog.kill('SIGKILL')
    }
  })

  inLong(linuxTest)(
    'are shown to people, of the CPUs that may be used; the package needs no compiler and no cache',
    () => {
      const folder = packageAt('package')
      copyFileSync(built(), `${folder}/dist/native/linux-${process.arch}/peaks`)
      writeHashes(folder)
      const [first, ...args] = [...ON_ONE, process.execPath, `${folder}/dist/ggml2perfetto.js`, 'peaks']
      const env = { ...process.env, ...NO_COMPILER, XDG_CACHE_HOME: '/proc/x' }
      const { status, stdout, stderr } = spawnSync(first!, args, { env, encoding: 'utf8' })
      expect([status, stderr]).toEqual([0, ''])
      expect(stdout).toMatch(/^.+, \d+ CPUs?\n {2} +1 thread +\d+ threads? +measured with\n/)
      expect(stdout).toMatch(/\n {2}memory, read +[\d.]+ GB\/s +[\d.]+ GB\/s {3}\w/)
      expect(stdout).toMatch(/\n {2}FP32 +[\d .]+ GFLOP\/s +[\d .]+ GFLOP\/s {3}\w/)
      expect(stdout).toMatch(/\n {2}INT8 dot products +[\d .]+ GOP\/s +[\d .]+ GOP\/s {3}\w/)
      expect(stdout).toMatch(/\n {2}balance, FP32 +[\d.]+ FLOP\/byte +[\d.]+ FLOP\/byte\n/)
      expect(stdout).toMatch(/\nmeasured now, \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\n/)
      if (hasTaskset)
        expect(stdout).toMatch(/ 1 thread +1 thread +measured with\n(.*\n)*? {2}FP32 +(.*?) GFLOP\/s +\2 GFLOP/)
    },
  )
})

describe('peaks that are kept', () => {
  const placed = (name: string, found: string) => {
    const folder = dirname(at(`${name}-cache/${relative(at('cache'), built())}`))
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    writeFileSync(`${folder}/found.json`, found)
    writeFileSync(`${folder}/peaks`, PRINTS_FOUND, { mode: 0o755 })
    writeSums(folder)
    const cli = (...args: string[]) => {
      const { code, stdout, stderr } = run(args, { env: { XDG_CACHE_HOME: at(`${name}-cache`) } })
      expect([code, stderr]).toEqual([0, ''])
      return stdout
    }
    const files = () =>
      readdirSync(at(`${name}-cache/ggml2perfetto`))
        .filter((file) => file.endsWith('.json'))
        .map((file) => at(`${name}-cache/ggml2perfetto/${file}`))
    return { cli, files, measured: (...args: string[]) => JSON.parse(cli('peaks', '--json', ...args)) as Peaks }
  }

  linuxTest('until they are measured afresh, or the file is damaged; without the name of the host', () => {
    const { cli, measured, files } = placed('quiet', foundPeaks(0.01))
    const first = measured()
    expect([first.cached, first.disturbed, first.load_share]).toEqual([false, null, 0.01])
    expect(measured()).toEqual({ ...first, cached: true })
    expect(cli('peaks')).toMatch(/\nmeasured at [\d: -]+ UTC, and kept; --fresh measures again\n/)
    const fresh = measured('--fresh')
    expect([fresh.cached, fresh.measured_at === first.measured_at]).toEqual([false, false])
    expect(files()).toEqual([expect.stringMatching(/\/peaks-[0-9a-f]{16}\.json$/)])
    const whole = readFileSync(files()[0]!, 'utf8')
    expect(Object.keys(JSON.parse(whole))).toEqual([
      ...['cpu', 'cpus', 'threads', 'read_bytes', 'fp32_flops', 'int8_ops', 'load_share', 'measured_at', 'program'],
    ])
    for (const damaged of ['null', whole.slice(0, -20), whole.replace(/"all": \d+/, '"all": -1')]) {
      writeFileSync(files()[0]!, damaged)
      expect(measured().cached).toBe(false)
      expect(measured().cached).toBe(true)
    }
  })

  linuxTest.each([
    ['load', foundPeaks(0.4), 'others took 40 % of these CPUs'],
    ['windows', foundPeaks(0, 0.3), 'the median window reached 30 % of the best'],
  ])('but not beside load: %s', (name, found, why) => {
    const { cli, measured, files } = placed(name, found)
    expect(measured()).toMatchObject({ disturbed: why, cached: false })
    expect(files()).toEqual([])
    expect(cli('peaks')).toContain(`disturbed, and not kept: ${why}; measure again`)
  })

  linuxTest(
    'nor on a machine so busy that nothing was measured: a sentence with a remedy, no figures of a program',
    () => {
      const { cli } = placed('busy', foundPeaks(0.9, 0))
      expect(cli('peaks')).toContain(
        'disturbed, and not kept: others took 90 % of these CPUs, the median window reached 0 %',
      )
      placed('nothing', foundPeaks(0.9).replace(/"one":[\d.e+]+/, '"one":0'))
      const { code, stdout, stderr } = run(['peaks'], { env: { XDG_CACHE_HOME: at('nothing-cache') } })
      expect([code, stdout]).toEqual([1, ''])
      expect(stderr).toMatch(
        /^error: peaks: the machine is too busy to be measured: [\w ,]+\nhint: stop other programs/,
      )
      expect(stderr).not.toMatch(/[{}"]/)
    },
  )

  linuxTest('are what logs of this machine are compared with, others not', () => {
    const { cli } = placed('used', foundPeaks(0))
    const analysed = (log: string, ...args: string[]) => JSON.parse(cli('stats', '--json', ...args, log)) as Analysis
    const log = (name: string, more: Record<string, string> | undefined) => {
      const writer = begun(more && { cpu: cpus()[0]!.model.trim(), cpus: String(cpus().length), ...more })
      runCalls(writer, [5, 1, 1], 1)
      writer.end(1e6)
      writeFileSync(at(name), writer.take())
      return at(name)
    }
    const own = log('own.ggtrace', {})
    const peaksIn = ({ rooflines, undetermined }: Analysis) => ({
      bytesPerS: rooflines.find(({ scope }) => scope === 'phase')!.peak_bytes_per_s,
      why: undetermined.filter(({ what }) => what === 'rooflines').map(({ why }) => why),
    })
    expect(peaksIn(analysed(own))).toEqual({ bytesPerS: null, why: [] })
    expect(peaksIn(analysed(own, '--peaks', 'measure'))).toEqual({ bytesPerS: 1e10, why: [] })
    expect(peaksIn(analysed(own))).toEqual({ bytesPerS: 1e10, why: [] })
    expect(peaksIn(analysed(own, '--peak-gbs', '3'))).toEqual({ bytesPerS: 3e9, why: [] })
    const other = log('other.ggtrace', { cpu: 'Other 9' })
    expect(peaksIn(analysed(other))).toEqual({
      bytesPerS: null,
      why: [expect.stringMatching(/^the peaks were measured on ".*", the log was recorded on "Other 9"$/)],
    })
    const larger = log('larger.ggtrace', { cpus: '4096' })
    expect(peaksIn(analysed(larger)).why).toEqual([
      expect.stringMatching(/on a machine of \d+ CPUs?, the log was recorded on one of 4096$/),
    ])
    const unknown = log('unknown.ggtrace', undefined)
    expect(peaksIn(analysed(unknown))).toEqual({
      bytesPerS: null,
      why: [expect.stringMatching(/^the log does not name its machine/)],
    })
    expect(cli('why', own)).not.toContain('--peaks measure')
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
    const { status, stderr } = spawnSync('sh', ['-c', line, built()], { encoding: 'utf8' })
    expect([status, stderr]).toEqual([1, expect.stringMatching(/^peaks: .*: Cannot allocate memory\n$/)])
  })

  test('on other systems', async () => {
    await expect(measurePeaks({ env: {}, platform: 'darwin' })).rejects.toThrow(
      'peaks: runs on Linux only so far, this is macOS\nhint: ',
    )
  })
})

/** Programs that end so after they have printed something. */
const ENDINGS = [
  ['SIGKILL', 'echo "{" ; kill -KILL $$', 'was ended by SIGKILL'],
  ['SIGTERM', 'echo of a library >&2; kill -TERM $$', 'was ended by SIGTERM'],
  ['SIGSEGV', 'kill -SEGV $$', 'was ended by SIGSEGV'],
  ['exit', 'exit 3', 'ended with exit code 3'],
] as const

describe('where the measuring program fails, its ending is named, and nothing is kept', () => {
  const placed = (name: string, ending: string) => {
    const folder = dirname(at(`${name}-ends/${relative(at('cache'), built())}`))
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    writeFileSync(`${folder}/peaks`, `#!/bin/sh\n${ending}\n`, { mode: 0o755 })
    writeSums(folder)
    mkdirSync(at(`${name}-tmp`), { recursive: true })
    const left = () => [at(`${name}-ends/ggml2perfetto`), at(`${name}-tmp`)].flatMap((path) => readdirSync(path))
    return { env: { XDG_CACHE_HOME: at(`${name}-ends`), TMPDIR: at(`${name}-tmp`) }, left, build: basename(folder) }
  }

  linuxTest.each(ENDINGS)('peaks: %s', (name, ending, how) => {
    const { env, left, build } = placed(name, ending)
    const { code, stdout, stderr } = run(['peaks'], { env })
    expect([code, stdout, stderr]).toEqual([1, '', `error: peaks: cannot measure: the measuring program ${how}\n`])
    expect(left()).toEqual([build])
  })

  linuxTest.each(ENDINGS)('times of kernels: %s', async (name, ending, how) => {
    const { env, left, build } = placed(name, ending)
    const log = fileSource(join(HOME, 'examples/moe.ggtrace.gz'))
    const analysis = await analyzeSteps({ name: 'moe', source: log }, { series: WHAT_IF_SERIES })
    const here = { ...analysis, run: { ...analysis.run, cpu: cpus()[0]!.model.trim(), build: '1' } }
    const measuring = measureKernels(here, { env: { ...process.env, ...env }, types: ['q8_0'], ggml: at('.') })
    const hint = name === 'exit' ? '\nhint: --ggml <folder of libggml-base.so>' : ''
    await expect(measuring).rejects.toMatchObject({
      name: 'UsageError',
      message: `peaks --types: the measuring program ${how}${hint}`,
    })
    expect(left()).toEqual([build])
  })
})

describe('the measuring program', () => {
  const make = (name: string, compiler: string) => {
    const args = ['-s', '-C', NATIVE, `BUILD=${at(name)}`, `CC=${compiler}`, at(`${name}/peaks`)]
    const { status, stderr } = spawnSync('make', args, { encoding: 'utf8' })
    expect([compiler, status, stderr]).toEqual([compiler, 0, ''])
  }
  const testWith = (...tools: string[]) =>
    canRecord && tools.every((tool) => canRun(tool, '--version')) ? test : test.skip
  const ARM = 'aarch64-linux-gnu-gcc'

  inLong(testWith('make', 'gcc'))('is built by gcc without a warning', () => make('gcc', 'gcc'))
  inLong(testWith('make', 'clang'))('is built by clang without a warning', () => make('clang', 'clang'))
  inLong(testWith('make', ARM))('is built for arm64 without a warning', () => make('arm64', ARM))
})

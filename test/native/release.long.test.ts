import { execFileSync, spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { cacheFolder } from '../cache.cjs'
import { needsOf } from '../elf.ts'
import { readLog } from './recording.ts'

/** What is built to be given away: it runs with the glibc of Debian 11. */

const NATIVE = fileURLToPath(new URL('../../native', import.meta.url))
const FETCH = fileURLToPath(new URL('../../scripts/fetch-debian.mjs', import.meta.url))
const FLOOR = [2, 31]
const FILES = ['libggml2perfetto.so', 'libggml2perfetto-nvtx.so', 'peaks'] as const
const has = (command: string) => spawnSync(command, ['--version'], { stdio: 'ignore' }).status === 0
const isLinux = process.platform === 'linux'

const architectures = [
  { arch: 'x64', machine: 62, compiler: 'cc', isThere: isLinux && process.arch === 'x64' && has('cc') },
  {
    arch: 'arm64',
    machine: 183,
    compiler: 'aarch64-linux-gnu-gcc',
    isThere: isLinux && has('aarch64-linux-gnu-gcc'),
  },
]

const isNewer = (version: string) => {
  const [major, minor] = version.slice('GLIBC_'.length).split('.').map(Number) as [number, number]
  return major > FLOOR[0]! || (major === FLOOR[0] && minor > FLOOR[1]!)
}

for (const { arch, machine, compiler, isThere } of architectures) {
  const describeIf = isThere ? describe : describe.skip
  describeIf(`the release for ${arch} (needs ${compiler})`, () => {
    const build = `build/release-${arch}`
    const pathOf = (name: string) => join(NATIVE, build, 'release', name)
    beforeAll(() => {
      mkdirSync(join(NATIVE, 'build'), { recursive: true })
      const make = ['make', '-s', '-C', NATIVE, `BUILD=${build}`, `CC=${compiler}`, 'release']
      execFileSync('flock', [join(NATIVE, 'build/tests.lock'), ...make])
    })

    test.each(FILES)('%s needs no glibc newer than 2.31', (name) => {
      const needs = needsOf(pathOf(name))
      expect(needs.machine).toBe(machine)
      expect(needs.versions.length).toBeGreaterThan(0)
      expect(needs.versions.filter((version) => /^GLIBC_/.test(version) && isNewer(version))).toEqual([])
      expect(needs.versions.filter((version) => !/^GLIBC_[\d.]+$/.test(version))).toEqual([])
      // There, these are libraries of their own, and a program may be without them.
      expect(needs.libraries).toEqual(expect.arrayContaining(['libdl.so.2', 'libpthread.so.0']))
    })
  })
}

/** Why what was built cannot be tried there; undefined where it can. */
function whyNot(root: string, arch: string, program: string, isThere: boolean): string | undefined {
  if (!isThere) return 'needs a compiler'
  if (arch === 'arm64' ? !has(program) : process.getuid?.() !== 0) return `needs ${arch === 'arm64' ? program : 'root'}`
  const wanted = ['--release=bullseye', `--arch=${arch === 'x64' ? 'amd64' : arch}`, root, 'coreutils']
  const { status, stderr } = spawnSync('flock', [`${root}.lock`, process.execPath, FETCH, ...wanted])
  return status === 0 ? undefined : `needs Debian’s packages: ${`${stderr}`.trim().split('\n').at(-1)}`
}

for (const { arch, compiler, isThere } of architectures) {
  const root = cacheFolder(`debian-11-${arch}`)
  const emulator = 'qemu-aarch64-static'
  const problem = whyNot(root, arch, emulator, isThere)
  const debian = problem === undefined ? describe : describe.skip

  debian(`in Debian 11 for ${arch} (${problem ?? (arch === 'x64' ? 'chroot' : emulator)})`, () => {
    const pathOf = (name: string) => join(NATIVE, `build/release-${arch}/release`, name)
    /** Runs a program with its libc; all symbols are looked up at the start. */
    function run(program: string, library?: string, ...more: string[]) {
      const variables = ['LD_BIND_NOW=1', ...(library === undefined ? [] : [`LD_PRELOAD=${library}`]), ...more]
      const help = ['--help']
      const [first, ...rest] =
        arch === 'x64'
          ? ['chroot', root, 'env', ...variables, program, ...help]
          : [emulator, '-L', root, ...variables.flatMap((variable) => ['-E', variable]), program, ...help]
      const { status, stdout, stderr } = spawnSync(first!, rest, { encoding: 'utf8' })
      return { status, stdout, stderr }
    }
    /** Where the emulator or chroot finds what was built. */
    const placed = (name: string) => {
      if (arch === 'arm64') return pathOf(name)
      copyFileSync(pathOf(name), join(root, 'tmp', name))
      return `/tmp/${name}`
    }
    const inRoot = (path: string) => (arch === 'arm64' ? join(root, path) : path)

    test('glibc is 2.31', () => {
      const libc = `/lib/${arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu/libc.so.6`
      expect(run(inRoot(libc)).stdout).toMatch(/release version 2\.31\b/)
    })

    test.each(FILES)('%s has all symbols, also in a program that is linked with libc alone', (name) => {
      const result = name === 'peaks' ? run(placed(name)) : run(inRoot('/bin/true'), placed(name))
      expect(result).toEqual({ status: 0, stdout: expect.any(String), stderr: '' })
    })

    test('a program is recorded', async () => {
      const [program, module, log] = ['calls', 'libcalls.so', 'calls.ggtrace'].map((name) => join('/tmp', name))
      const source = fileURLToPath(new URL('calls-program.c', import.meta.url))
      const release = join(NATIVE, 'release')
      const flags = [
        '-std=gnu11',
        '-O1',
        '-Wall',
        '-Wextra',
        '-Werror',
        '-include',
        join(release, 'glibc-floor.h'),
        source,
      ]
      execFileSync(compiler, [...flags, '-DMODULE', '-shared', '-fPIC', '-o', join(root, module!)])
      const link = [
        '-Wl,--wrap=__libc_start_main',
        `-Wl,-rpath,${inRoot('/tmp')}`,
        join(release, 'start.c'),
        `-L${root}/tmp`,
        '-l:libcalls.so',
      ]
      execFileSync(compiler, [...flags, ...link, '-o', join(root, program!)])
      rmSync(join(root, log!), { force: true })
      const out = `GGML2PERFETTO_OUT=${inRoot(log!)}`
      const result = run(inRoot(program!), placed('libggml2perfetto.so'), out)
      expect(result).toEqual({ status: 0, stdout: 'done: 5 calls, 7 tokens\n', stderr: '' })
      const { of, issues } = await readLog(join(root, log!))
      expect(issues).toEqual([])
      expect(of('token').map(({ phase, tokens }) => [phase, tokens])).toEqual([
        ['prefill', 3],
        ...Array.from({ length: 4 }, () => ['decode', 1]),
      ])
    })
  })
}

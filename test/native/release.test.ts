import { execFileSync, spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { needsOf } from '../elf.ts'

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
      const own = name === 'peaks' ? ['libpthread.so.0'] : ['libdl.so.2', 'libpthread.so.0']
      expect(needs.libraries).toEqual(expect.arrayContaining(own))
    })
  })
}

const ROOT = join(tmpdir(), 'ggml2perfetto-debian-11')

/** Why it cannot be tried here; undefined where it can. */
function whyNot(): string | undefined {
  if (!isLinux || process.getuid?.() !== 0) return 'needs root, for chroot'
  if (!architectures[0]!.isThere) return 'needs x64 and cc'
  const { status, stderr } = spawnSync('flock', [
    `${ROOT}.lock`,
    process.execPath,
    FETCH,
    '--release=bullseye',
    ROOT,
    'coreutils',
  ])
  return status === 0 ? undefined : `needs Debian’s packages: ${`${stderr}`.trim().split('\n').at(-1)}`
}

const problem = whyNot()
const debian = problem === undefined ? describe : describe.skip

debian(`in Debian 11 (${problem ?? 'as root'})`, () => {
  beforeAll(() => {
    for (const name of FILES) copyFileSync(join(NATIVE, 'build/release-x64/release', name), join(ROOT, 'tmp', name))
  })
  const run = (...command: string[]) => {
    const { status, stderr } = spawnSync('chroot', [ROOT, 'env', 'LD_BIND_NOW=1', ...command], { encoding: 'utf8' })
    return { status, stderr }
  }

  test('glibc is 2.31', () => {
    const { stdout } = spawnSync('chroot', [ROOT, '/lib/x86_64-linux-gnu/libc.so.6'], { encoding: 'utf8' })
    expect(stdout).toMatch(/release version 2\.31\b/)
  })

  test('every symbol is found, also in a program that is linked with libc alone', () => {
    for (const library of FILES.slice(0, 2)) {
      const result = run(`LD_PRELOAD=/tmp/${library}`, 'true')
      expect([library, result]).toEqual([library, { status: 0, stderr: '' }])
    }
    expect(run('/tmp/peaks', '--help')).toEqual({ status: 0, stderr: '' })
  })
})

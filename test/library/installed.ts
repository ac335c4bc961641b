import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { ROOT } from '../root.ts'

/** The package, packed and installed into an empty folder; and its native parts, built again. */

const { files } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { files: string[] }

export interface Installed {
  readonly folder: string
  readonly tarball: string
  /** Paths in it. */
  readonly packed: string[]
}

export function install(): Installed {
  const run = (command: string, args: string[], cwd: string) =>
    execFileSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  const clone = mkdtempSync(join(tmpdir(), 'ggml2perfetto-pack-'))
  const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-user-'))
  // A copy: the native parts are compiled into dist/, where other tests are at work.
  const folders = files.map((path) => path.split('/')[0]!).filter((path) => path !== 'native' && !path.startsWith('!'))
  for (const path of [...new Set(folders), 'native', 'scripts', 'package.json', 'README.md']) {
    cpSync(join(ROOT, path), join(clone, path), { recursive: true, filter: (from) => !from.includes('native/build') })
  }
  run(process.execPath, ['scripts/build-native.mjs'], clone)
  // Without `prepack`, which is that and tsup, whose output is in dist/.
  const [made] = JSON.parse(run('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', folder], clone))
  rmSync(clone, { recursive: true })
  run('npm', ['init', '-y'], folder)
  const tarball = join(folder, made.filename)
  run('npm', ['install', '--no-save', '--prefer-offline', '--no-audit', '--no-fund', tarball], folder)
  return { folder, tarball, packed: made.files.map(({ path }: { path: string }) => path) }
}

const COMPILERS: Readonly<Record<string, string>> = { arm64: 'aarch64-linux-gnu-gcc', musl: 'musl-gcc' }
const again = new Map<string, string>()

/** A native part, such as `linux-x64/peaks`, built in this clone: where release.long.test.ts builds it, which another process may do now. */
export function releasedAgain(name: string): string {
  const machine = dirname(name).replace('linux-', '')
  const native = join(ROOT, 'native')
  const build = `build/release-${machine}`
  if (!again.has(machine)) {
    mkdirSync(join(native, 'build'), { recursive: true })
    const isOwn = machine === process.arch
    const compiler = isOwn
      ? process.env['CC'] || 'cc'
      : Object.entries(COMPILERS).find(([ending]) => machine.endsWith(ending))![1]
    const make = ['make', '-s', '-j', `${availableParallelism()}`, '-C', native, `BUILD=${build}`, `CC=${compiler}`]
    execFileSync('flock', [join(native, 'build/tests.lock'), ...make, 'release'])
    again.set(machine, join(native, build, 'release'))
  }
  return join(again.get(machine)!, name.slice(dirname(name).length + 1))
}

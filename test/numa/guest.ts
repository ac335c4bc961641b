import { type ExecFileSyncOptionsWithStringEncoding, execFile, execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { cacheFolder } from '../cache.cjs'

/** A virtual machine with two NUMA nodes of two CPUs each, emulated by QEMU, which boots Debian's kernel for clouds and runs programs. */

const execute = promisify(execFile)
const QEMU = 'qemu-system-x86_64'
const KERNELS = cacheFolder('kernel')
/** Emulated on a busy machine, it takes half a minute. */
const LIMIT_MS = 300_000

/** The kernel's image: of Debian's package, fetched once; undefined where that is not possible, or there is no QEMU. */
export function findKernel(): string | undefined {
  if (process.arch !== 'x64' || spawnSync(QEMU, ['--version'], { stdio: 'ignore' }).error) return undefined
  if (imageIn(KERNELS) === undefined && !fetchKernel()) return undefined
  return imageIn(KERNELS)
}

const imageIn = (folder: string) => {
  const boot = join(folder, 'boot')
  const name = existsSync(boot) && readdirSync(boot).find((name) => name.startsWith('vmlinuz'))
  return name ? join(boot, name) : undefined
}

function fetchKernel(): boolean {
  const quiet: ExecFileSyncOptionsWithStringEncoding = {
    ...{ cwd: KERNELS, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] },
  }
  try {
    mkdirSync(KERNELS, { recursive: true })
    const depends = execFileSync('apt-cache', ['depends', 'linux-image-cloud-amd64'], quiet)
    const name = /Depends: (linux-image-[\w.+-]+)/.exec(depends)?.[1] ?? ''
    execFileSync('apt-get', ['download', '-qq', name], quiet)
    const file = readdirSync(KERNELS).find((file) => file.startsWith(name))!
    execFileSync('dpkg', ['-x', file, '.'], quiet)
    return true
  } catch {
    return false
  }
}

/** The libraries that a program needs, as the loader finds them; `folders`: where it looks first. */
function librariesOf(program: string, folders: readonly string[]): string[] {
  const env = { ...process.env, LD_LIBRARY_PATH: folders.join(':') }
  const lines = execFileSync('ldd', [program], { encoding: 'utf8', env }).split('\n')
  return lines.flatMap((line) => /(\/\S+) \(0x/.exec(line)?.[1] ?? [])
}

/** What a guest runs: programs with the libraries that they need, from these folders or the system's, and further files. */
export interface GuestRun {
  readonly kernel: string
  /** A program that is statically linked, and runs the lines of `runs`: test/numa/init.c. */
  readonly init: string
  readonly programs: readonly string[]
  readonly libraries: readonly string[]
  /** Lines of /runs: the file for the output, variables, a program of /bin and its arguments. */
  readonly runs: readonly string[]
  readonly folder: string
}

/** Boots the guest, and returns the files that its programs left in /out, and what its console shows. */
export async function runGuest({ kernel, init, programs, libraries, runs, folder }: GuestRun) {
  const archive = new Archive()
  archive.add('init', readFileSync(init))
  archive.add('runs', Buffer.from(`${runs.join('\n')}\n`))
  const needed = new Set(
    [...programs, ...libraries].flatMap((path) =>
      librariesOf(path, [...new Set(libraries.map((path) => dirname(path)))]),
    ),
  )
  for (const path of programs) archive.add(`bin/${basename(path)}`, readFileSync(path))
  for (const path of [...libraries, ...needed]) archive.add(`lib/${basename(path)}`, readFileSync(realpathSync(path)))
  archive.add('lib64/ld-linux-x86-64.so.2', readFileSync('/lib64/ld-linux-x86-64.so.2'))
  const [image, output] = [join(folder, 'guest.cpio'), join(folder, 'guest.out')]
  writeFileSync(image, archive.finish())
  const node = (id: number) => [
    ...['-object', `memory-backend-ram,id=m${id},size=192M`],
    ...['-numa', `node,nodeid=${id},cpus=${2 * id}-${2 * id + 1},memdev=m${id}`],
  ]
  const words = [
    ...['-m', '384M', '-smp', '4', '-cpu', 'max', '-accel', 'tcg,thread=multi', ...node(0), ...node(1)],
    ...['-display', 'none', '-no-reboot', '-net', 'none', '-serial', 'stdio', '-serial', `file:${output}`],
    ...['-kernel', kernel, '-initrd', image, '-append', 'console=ttyS0 quiet panic=-1 mitigations=off'],
  ]
  const { stdout } = await execute(QEMU, words, { timeout: LIMIT_MS, encoding: 'utf8' })
  return { console: stdout, files: filesIn(readFileSync(output)) }
}

/** `name size\n` and its bytes, one file after the other. */
function filesIn(bytes: Buffer): Map<string, Buffer> {
  const files = new Map<string, Buffer>()
  for (let at = 0; at < bytes.length; ) {
    const end = bytes.indexOf(10, at)
    const [name = '', size = ''] = bytes.toString('latin1', at, end).split(' ')
    files.set(name, bytes.subarray(end + 1, end + 1 + Number(size)))
    at = end + 1 + Number(size)
  }
  return files
}

/** An archive of cpio (newc), which Linux unpacks as its first file system. */
class Archive {
  private readonly parts: Buffer[] = []
  private readonly folders = new Set<string>()
  private size = 0
  private count = 0

  add(path: string, bytes: Uint8Array): void {
    const folder = dirname(path)
    if (folder !== '.' && !this.folders.has(folder)) {
      this.folders.add(folder)
      this.entry(folder, 0o40755, new Uint8Array())
    }
    this.entry(path, 0o100755, bytes)
  }

  finish(): Buffer {
    this.entry('TRAILER!!!', 0, new Uint8Array())
    return Buffer.concat(this.parts)
  }

  private entry(path: string, mode: number, bytes: Uint8Array): void {
    const fields = [++this.count, mode, 0, 0, 1, 0, bytes.length, 0, 0, 0, 0, path.length + 1, 0]
    const head = `070701${fields.map((field) => field.toString(16).padStart(8, '0')).join('')}${path}\0`
    this.put(Buffer.from(head, 'latin1'))
    this.put(bytes)
  }

  private put(bytes: Uint8Array): void {
    this.size += bytes.length
    const padding = (4 - (this.size % 4)) % 4
    this.parts.push(Buffer.from(bytes), Buffer.alloc(padding))
    this.size += padding
  }
}

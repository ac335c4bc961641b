import { closeSync, existsSync } from 'node:fs'
import { mkdir, open, readdir, readFile, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pid } from 'node:process'
import { UsageError } from '../../errors.ts'
import { atExit, removeEmpty } from '../at-exit.ts'
import { describeEnding, startChild } from '../children.ts'

/**
 * A separate buffer of the kernel's tracing, independent of other tracing on this machine: a folder in
 * /sys/kernel/tracing/instances. See the kernel's Documentation/trace/ftrace.rst, "Instances".
 */
export interface TraceInstance {
  /** Where tracefs is mounted. */
  readonly root: string
  /** The instance's folder. */
  readonly folder: string
  /** Numbers of the CPUs that have a buffer, ascending. */
  readonly cpus: readonly number[]
  /** Size of one CPU's buffer, in KiB. */
  readonly ringKib: number
  /** `system/event`: those of the requested events that this kernel has. */
  readonly events: readonly string[]
  /** Starts or stops recording; the buffer does not contain events that happen while it is stopped. */
  run(isOn: boolean): Promise<void>
  /** Frees the buffers; files of the instance must be closed. */
  remove(): Promise<void>
}

/** What an instance is to record. */
export interface TraceWishes {
  /** As in `trace_clock`, for example `mono`. */
  readonly clock: string
  /** `system/event`; the first must exist, others are ignored if the kernel does not have them. */
  readonly events: readonly string[]
  /** Bytes of each CPU's buffer; by default as many as there is memory for, within limits. */
  readonly buffer?: number | undefined
}

const NAME = /^ggml2perfetto-(\d+)(-\d+)?$/
/** For all CPUs together; each CPU gets a share, within these limits. */
const RINGS_KIB = 512 << 10
const RING_KIB_MAX = 16384
const RING_KIB_MIN = 256

/**
 * Makes an instance that is stopped, and removes those that killed processes left. Throws UsageError, with advice, if this
 * user or this kernel cannot do so.
 */
export async function makeInstance(wishes: TraceWishes): Promise<TraceInstance> {
  const { root, release } = await findTracefs()
  try {
    const { remove, ...instance } = await makeInstanceIn(root, wishes)
    return { ...instance, remove: () => remove().finally(release) }
  } catch (error) {
    await release()
    throw error
  }
}

async function makeInstanceIn(root: string, wishes: TraceWishes): Promise<TraceInstance> {
  await removeStale(root)
  const folder = await makeFolder(join(root, 'instances'))
  const file = (name: string) => join(folder, name)
  let ring: Awaited<ReturnType<typeof open>> | undefined
  const release = atExit(() => {
    if (ring) closeSync(ring.fd)
    removeEmpty(folder)
  })
  const remove = async () => {
    release()
    await ring?.close()
    await rmdir(folder)
  }
  try {
    await write(file('tracing_on'), '0')
    // When no process holds it open any more, even after kill -9, the buffer is stopped and its memory freed.
    await write(file('options/disable_on_free'), '1').catch(() => undefined)
    // Linux 4.14 and later: saved_tgids then contains the process of each thread that ran.
    await write(file('options/record-tgid'), '1').catch(() => undefined)
    ring = await open(file('free_buffer'), 'w').catch(() => undefined)
    await write(file('trace_clock'), wishes.clock)
    const cpus = await cpusOf(folder)
    const ringKib = await sizeRings(file('buffer_size_kb'), cpus.length, wishes.buffer)
    const events = await enable(file('events'), wishes.events)
    const run = (isOn: boolean) => write(file('tracing_on'), isOn ? '1' : '0')
    return { root, folder, cpus, ringKib, events, run, remove }
  } catch (error) {
    await remove().catch(() => undefined)
    throw await problemOf(error, folder)
  }
}

/** A folder with tracefs, until `release`. */
interface Tracefs {
  readonly root: string
  release(): Promise<void>
}

const PLACE = '/sys/kernel/tracing'
/** It is mounted within this time, in ms. */
const MOUNT_MS = 30_000

async function findTracefs(): Promise<Tracefs> {
  const mounts = (await readFile('/proc/self/mounts', 'utf8').catch(() => ''))
    .split('\n')
    .map((line) => line.split(' '))
  const folders = mounts.filter(([, , type]) => type === 'tracefs').map(([, folder]) => folder!)
  const root = folders.find((folder) => folder === PLACE) ?? folders[0]
  return root === undefined ? mountTracefs() : { root, release: async () => undefined }
}

/**
 * Mounts tracefs in the mount namespace of a process that then ends, so that nobody else sees it. The open folder keeps it usable:
 * the kernel unmounts it when the folder is closed, or this process ends.
 */
async function mountTracefs(): Promise<Tracefs> {
  const line = `mount -t tracefs tracefs ${PLACE} && echo mounted && cat`
  // Ctrl-C is not for it.
  const options = { stdio: 'pipe', detached: true } as const
  const helper = startChild('unshare', ['--mount', '--propagation', 'private', 'sh', '-c', line], options, {
    isGuarded: true,
  })
  const { pid, stdin, stdout, stderr } = helper.child
  stdin!.on('error', () => undefined)
  let complaint = ''
  stderr!.setEncoding('utf8').on('data', (text: string) => {
    complaint += text
  })
  const late = setTimeout(helper.kill, MOUNT_MS)
  const mounted = new Promise<undefined>((resolve) => stdout!.once('data', () => resolve(undefined)))
  const ending = await Promise.race([mounted, helper.ended])
  clearTimeout(late)
  try {
    if (ending) throw notMounted(complaint || (ending.code === null ? describeEnding('unshare', ending) : ''))
    const file = await open(`/proc/${pid}/root${PLACE}`)
    return { root: `/proc/self/fd/${file.fd}`, release: () => file.close() }
  } finally {
    helper.kill()
  }
}

function notMounted(complaint: string): UsageError {
  const why = complaint.trim().split('\n').at(-1)
  return new UsageError(
    `tracefs is not mounted here${why ? `, and cannot be: ${why}` : ''}\n` +
      'hint: sudo mount -t tracefs tracefs /sys/kernel/tracing; in a container: -v /sys/kernel/tracing:/sys/kernel/tracing --privileged',
  )
}

/** Removes our instances whose process has ended. The kernel refuses to remove one in use (EBUSY). */
async function removeStale(root: string): Promise<void> {
  const names = await readdir(join(root, 'instances')).catch(() => [])
  for (const name of names) {
    const owner = NAME.exec(name)?.[1]
    if (owner === undefined || existsSync(`/proc/${owner}`)) continue
    await rmdir(join(root, 'instances', name)).catch(() => undefined)
  }
}

async function makeFolder(parent: string): Promise<string> {
  for (let count = 1; ; count++) {
    const folder = join(parent, `ggml2perfetto-${pid}${count === 1 ? '' : `-${count}`}`)
    try {
      await mkdir(folder)
      return folder
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw await problemOf(error, folder)
    }
  }
}

/** Files of tracefs are neither created nor truncated: writing to one is a command. */
async function write(path: string, text: string): Promise<void> {
  await writeFile(path, text, { flag: 'r+' }).catch(async (error: NodeJS.ErrnoException) => {
    // Even root can only write to some of the files.
    if (error.code !== 'EACCES') throw error
    await writeFile(path, text, { flag: 'w' })
  })
}

async function cpusOf(folder: string): Promise<number[]> {
  const names = await readdir(join(folder, 'per_cpu'))
  return names
    .map((name) => Number(/^cpu(\d+)$/.exec(name)?.[1] ?? -1))
    .filter((cpu) => cpu >= 0)
    .sort((a, b) => a - b)
}

/** Gives each CPU a buffer of so many bytes, or the largest one for which there is memory. Returns its size in KiB. */
async function sizeRings(path: string, cpus: number, bytes: number | undefined): Promise<number> {
  if (bytes !== undefined) {
    const kib = Math.ceil(bytes / 1024)
    await write(path, `${kib}`)
    return kib
  }
  let kib = Math.min(RING_KIB_MAX, Math.max(RING_KIB_MIN, Math.floor(RINGS_KIB / cpus)))
  for (; ; kib = Math.floor(kib / 2)) {
    try {
      await write(path, `${kib}`)
      return kib
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOMEM' || kib < 2 * RING_KIB_MIN) throw error
    }
  }
}

async function enable(folder: string, wanted: readonly string[]): Promise<string[]> {
  const events: string[] = []
  for (const event of wanted) {
    try {
      await write(join(folder, event, 'enable'), '1')
      events.push(event)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || event === wanted[0]) throw error
    }
  }
  return events
}

/** The message for a failed call; other errors are returned unchanged. */
async function problemOf(error: unknown, folder: string): Promise<unknown> {
  const { code, path: found = folder } = error as NodeJS.ErrnoException
  const path = found.replace(/^\/proc\/self\/fd\/\d+/, PLACE)
  if (code === 'EACCES')
    return new UsageError(
      `${path}: permission denied: events of the whole machine are for root\n` +
        'hint: sudo ggml2perfetto record --sched -- setpriv --reuid=$(id -u) --regid=$(id -g) --init-groups <program>: ' +
        'the program itself still runs as you',
    )
  if (code === 'EPERM') return new UsageError(`${path}: not permitted${await whyNot()}`)
  if (code === 'EROFS')
    return new UsageError(`${path}: tracefs is mounted read-only, as containers do\nhint: record on the host`)
  if (code === 'ENOMEM')
    return new UsageError(
      `${path}: no memory for the buffers\nhint: a smaller one for each CPU, such as --sched-buffer 1M`,
    )
  if (code === 'ENOENT') return new UsageError(`${path}: this kernel does not have it`)
  if (code === 'EINVAL') return new UsageError(`${path}: this kernel does not know what was asked for`)
  return error
}

async function whyNot(): Promise<string> {
  const lockdown = await readFile('/sys/kernel/security/lockdown', 'utf8').catch(() => '')
  const mode = /\[(integrity|confidentiality)\]/.exec(lockdown)?.[1]
  return mode === undefined
    ? ': a container, or a security module, forbids tracing\nhint: record on the host'
    : `: the kernel is locked down (${mode})`
}

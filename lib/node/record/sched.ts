import { closeSync, constants as files, openSync, readSync } from 'node:fs'
import { type FileHandle, readdir, readFile } from 'node:fs/promises'
import { hostname, machine, release, type } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { atExit } from '../at-exit.ts'
import { explainFileError, writeFileWhole } from '../files.ts'
import { namelessFile } from '../outputs.ts'
import { type CpuPages, pageBytes, type TraceDatHeader, traceDat } from './trace-dat.ts'
import { makeInstance, type TraceInstance } from './tracefs.ts'

/** The recorded scheduler events of the whole machine. */
export interface SchedRecording {
  /** A trace.dat file in trace-cmd's format (version 6, CLOCK_MONOTONIC); undefined if there is none. */
  readonly path: string | undefined
  /** Why there is none, as a message. */
  readonly problem: string | undefined
  /** Size of the file. */
  readonly bytes: number
  readonly events: number
  /** Events that the kernel dropped, because its buffers were not read fast enough. */
  readonly lost: number
  readonly cpus: number
  /** Bytes of the kernel's buffer of each CPU. */
  readonly buffer: number
}

const EVENTS = [
  'sched/sched_switch',
  'sched/sched_waking',
  'sched/sched_wakeup_new',
  'sched/sched_process_fork',
  'sched/sched_process_exec',
  'sched/sched_process_exit',
  'task/task_newtask',
  'task/task_rename',
] as const

/** An event of ftrace itself: what `trace_marker` writes. */
const OWN_EVENTS: readonly string[] = ['print']

/** The interval at which buffers are emptied: shorter, the fuller they were. */
const WAIT_MS_MIN = 1
const WAIT_MS_MAX = 100
/** Most bytes held in memory. */
const CHUNK_BYTES = 1 << 18

/** How {@link withSched} records. */
export interface SchedOptions {
  readonly onSchedProblem?: ((problem: string) => void) | undefined
  /** The kernel's name of the clock: CLOCK_MONOTONIC by default, or CLOCK_BOOTTIME. */
  readonly clock?: 'mono' | 'boot' | undefined
  /** Bytes of the kernel's buffer of each CPU; by default 16 MiB, less where there are many CPUs. */
  readonly schedBuffer?: number | undefined
}

/**
 * Runs a program while the scheduler's events of the whole machine are recorded: which thread is on which CPU. The file appears
 * under its name when it is complete. If this fails, the program runs nevertheless, and the result contains the reason;
 * `onSchedProblem` is called with it as soon as it is known.
 */
export async function withSched<E>(
  log: string,
  run: () => Promise<E>,
  { onSchedProblem, clock = 'mono', schedBuffer }: SchedOptions,
): Promise<{ ended: E; sched: SchedRecording }> {
  const path = `${log.replace(/(?<=[^/])\.(?:ggtrace|g2p)$/, '')}.sched.dat`
  const failed = ({ message }: Error): SchedRecording => {
    onSchedProblem?.(message)
    return { path: undefined, problem: message, bytes: 0, events: 0, lost: 0, cpus: 0, buffer: 0 }
  }
  const recorder = await startSched(path, clock, schedBuffer).catch(failed)
  if ('problem' in recorder) return { ended: await run(), sched: recorder }
  try {
    return { ended: await run(), sched: await recorder.finish().catch(failed) }
  } finally {
    await recorder.close()
  }
}

/** Begins to record. Throws UsageError if this user or this kernel cannot, or no file can be written. */
async function startSched(path: string, clock: string, buffer: number | undefined) {
  const instance = await makeInstance({ clock, events: EVENTS, buffer })
  const spools: Spool[] = []
  const close = async () => {
    for (const spool of spools) await spool.close().catch(() => undefined)
    await instance.remove().catch(() => undefined) // the next recording tries again
  }
  const failed = (error: unknown) => explainFileError(path, 'write', error)
  try {
    const page = pageBytes(await readFile(join(instance.root, 'events/header_page'), 'utf8'))
    const chunk = Buffer.allocUnsafe(page * Math.ceil(CHUNK_BYTES / page))
    for (const cpu of instance.cpus) spools.push(await Spool.open(instance, cpu, page, chunk, path))
    await instance.run(true)
  } catch (error) {
    await close()
    throw failed(error)
  }
  const ending = new AbortController()
  const drained = drain(spools, instance.ringKib << 10, ending.signal).catch(async (error) => {
    await instance.run(false)
    throw failed(error)
  })
  drained.catch(() => undefined) // reported when it is finished
  const finish = async (): Promise<SchedRecording> => {
    await instance.run(false)
    ending.abort()
    await drained
    const { header, events, lost } = await describe(instance)
    const { bytes } = await writeFileWhole(path, traceDat(header, spools))
    return { path, problem: undefined, bytes, events, lost, cpus: spools.length, buffer: instance.ringKib << 10 }
  }
  return {
    finish,
    close: async () => {
      ending.abort()
      await drained.catch(() => undefined)
      await close()
    },
  }
}

/** Moves pages from the kernel's buffers to the spools until `ending` is aborted, then the rest. */
async function drain(spools: readonly Spool[], ringBytes: number, ending: AbortSignal): Promise<void> {
  for (let waitMs = WAIT_MS_MIN; ; ) {
    const isLast = ending.aborted
    let most = 0
    for (const spool of spools) most = Math.max(most, await spool.fill(ringBytes))
    if (isLast) return
    if (most > ringBytes / 4) waitMs = Math.max(WAIT_MS_MIN, waitMs / 2)
    else if (most < ringBytes / 16) waitMs = Math.min(WAIT_MS_MAX, waitMs * 2)
    await sleep(waitMs, undefined, { signal: ending }).catch(() => undefined)
  }
}

/** The pages of one CPU, on their way from the kernel to the file. */
class Spool implements CpuPages {
  private constructor(
    readonly cpu: number,
    private readonly page: number,
    /** Shared by all CPUs, because one is emptied after the other. */
    private readonly chunk: Buffer,
    private readonly pipe: number,
    private readonly file: FileHandle,
  ) {}

  bytes = 0
  private readonly release = atExit(() => closeSync(this.pipe)) // else the kernel's buffer cannot be removed

  static async open({ folder }: TraceInstance, cpu: number, page: number, chunk: Buffer, output: string) {
    const pipe = openSync(join(folder, `per_cpu/cpu${cpu}/trace_pipe_raw`), files.O_RDONLY | files.O_NONBLOCK)
    try {
      return new Spool(cpu, page, chunk, pipe, await namelessFile(output))
    } catch (error) {
      closeSync(pipe)
      throw error
    }
  }

  /** Takes the content of the kernel's buffer, but not more than its size, because others wait. Returns the bytes taken. */
  async fill(bytesMax: number): Promise<number> {
    const before = this.bytes
    let filled: number
    do {
      filled = this.readPages()
      await this.file.writeFile(this.chunk.subarray(0, filled))
      this.bytes += filled
    } while (filled === this.chunk.length && this.bytes - before < bytesMax)
    return this.bytes - before
  }

  /** Fills the chunk while there are pages: each read returns one, possibly partly filled. Returns its bytes. */
  private readPages(): number {
    const { chunk, page, pipe } = this
    let filled = 0
    while (filled < chunk.length) {
      const bytes = readNow(pipe, chunk, filled, page)
      if (bytes === 0) break
      chunk.fill(0, filled + bytes, filled + page)
      filled += page
    }
    return filled
  }

  async *read(): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < this.bytes; ) {
      const { bytesRead } = await this.file.read(this.chunk, 0, Math.min(this.chunk.length, this.bytes - at), at)
      if (bytesRead === 0) throw new Error(`the pages of CPU ${this.cpu} end at ${at} of ${this.bytes} bytes`)
      yield this.chunk.subarray(0, bytesRead)
      at += bytesRead
    }
  }

  async close(): Promise<void> {
    this.release()
    closeSync(this.pipe)
    await this.file.close()
  }
}

/** Bytes read into the buffer; 0 if there are none now. */
function readNow(descriptor: number, to: Buffer, offset: number, length: number): number {
  try {
    return readSync(descriptor, to, offset, length, null)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return 0
    throw error
  }
}

interface Description {
  readonly header: TraceDatHeader
  readonly events: number
  readonly lost: number
}

/** The descriptions that readers of the pages need, as of now. */
async function describe({ root, folder, cpus, events }: TraceInstance): Promise<Description> {
  const text = (path: string) => readFile(path, 'utf8')
  const formatOf = (event: string) => text(join(root, 'events', event, 'format'))
  const own = await readdir(join(root, 'events/ftrace')).catch(() => [])
  const systems = new Map<string, string[]>()
  for (const event of events) {
    const system = dirname(event)
    systems.set(system, [...(systems.get(system) ?? []), await formatOf(event)])
  }
  const stats = new Map<number, string>()
  for (const cpu of cpus) stats.set(cpu, await text(join(folder, `per_cpu/cpu${cpu}/stats`)))
  const traceClock = await text(join(folder, 'trace_clock'))
  const header: TraceDatHeader = {
    headerPage: await text(join(root, 'events/header_page')),
    headerEvent: await text(join(root, 'events/header_event')),
    ftraceFormats: await Promise.all(
      own.filter((name) => OWN_EVENTS.includes(name)).map((name) => formatOf(`ftrace/${name}`)),
    ),
    systems,
    cmdlines: await text(join(root, 'saved_cmdlines')),
    tgids: await text(join(root, 'saved_tgids')).catch(() => ''),
    clock: /\[(\w+)\]/.exec(traceClock)![1]!, // in brackets: the one in use
    traceClock,
    uname: [type(), hostname(), release(), machine()].join(' '),
    stats,
  }
  const count = (...keys: readonly string[]) => {
    const values = [...stats.values()].flatMap((lines) =>
      keys.map((key) => new RegExp(`^${key}: (\\d+)`, 'm').exec(lines)),
    )
    return values.reduce((sum, found) => sum + Number(found?.[1] ?? 0), 0)
  }
  return { header, events: count('read events'), lost: count('overrun', 'commit overrun', 'dropped events') }
}

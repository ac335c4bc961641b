import type { WriteStream } from 'node:fs'
import { type FileHandle, open, readFile, rename } from 'node:fs/promises'
import { hostname, release } from 'node:os'
import { hrtime } from 'node:process'
import { finished } from 'node:stream/promises'
import { UsageError } from '../../errors.ts'
import { POWER_SCHEMA } from '../../model/power-events.ts'
import { explained, explainFileError } from '../files.ts'
import { ownUntilEnd } from '../left-overs.ts'
import { giveToCaller, hiddenNextTo } from '../outputs.ts'
import { type FoundMeters, findMeters } from './power-meters.ts'

/** A log of power and clocks. */
export interface PowerRecording {
  /** The log (docs/reference/power-logs.md); undefined if there is none. */
  readonly path: string | undefined
  /** Why there is none, as a message. */
  readonly problem: string | undefined
  readonly readings: number
  readonly meters: number
  /** Does it contain energy or power, not only clocks? */
  readonly hasPower: boolean
  /** Why parts are missing, a line each. */
  readonly missing: readonly string[]
}

/** Between readings: energies of RAPL are updated every millisecond, sensors of GPUs every 1 to 100 ms. 100 ms. */
const INTERVAL_MS = 100
const ROOT_HINT =
  'hint: sudo chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj, until the next boot, or run record as root: since Linux 5.10 only root may read them'

/**
 * Runs a program while meters of the kernel are read. If there are none that can be read, the program runs nevertheless, and the result
 * contains the reason; `onPowerProblem` is called with it as soon as it is known. `sysfs`: the folder that is `/sys`.
 */
export async function withPower<E>(
  log: string,
  run: () => Promise<E>,
  options: { readonly onPowerProblem?: ((problem: string) => void) | undefined; readonly sysfs?: string | undefined },
): Promise<{ result: E; power: PowerRecording }> {
  const path = `${log.replace(/(?<=[^/])\.ggtrace$/, '')}.power.csv`
  const failed = ({ message }: Error): PowerRecording => {
    options.onPowerProblem?.(message)
    return { path: undefined, problem: message, readings: 0, meters: 0, hasPower: false, missing: [] }
  }
  const recorder = await PowerRecorder.start(path, options.sysfs ?? '/sys').catch(failed)
  if (!('finish' in recorder)) return { result: await run(), power: recorder }
  try {
    const result = await run()
    return { result, power: await recorder.finish().catch(failed) }
  } finally {
    await recorder.close()
  }
}

class PowerRecorder {
  private readonly stream: WriteStream
  private readonly done: Promise<void>
  private timer: NodeJS.Timeout | undefined
  private readings = 0
  private readonly removePart: () => void

  private constructor(
    private readonly path: string,
    private readonly part: string,
    file: FileHandle,
    private readonly found: FoundMeters,
  ) {
    this.stream = file.createWriteStream()
    this.done = finished(this.stream)
    this.done.catch(() => undefined) // reported when it is finished
    this.removePart = ownUntilEnd(part)
  }

  /** Begins to read. Throws UsageError if there is nothing to read. */
  static async start(path: string, sysfs: string): Promise<PowerRecorder> {
    const found = findMeters(sysfs)
    if (found.meters.length === 0) {
      found.close()
      const why = [...found.notRead, ...found.absent].join('; ')
      throw new UsageError(found.notRead.length > 0 ? `${why}\n${ROOT_HINT}` : why)
    }
    const part = hiddenNextTo(path)
    const file = await open(part, 'wx').catch((error) => {
      found.close()
      throw explainFileError(path, 'write', error)
    })
    await giveToCaller(file)
    const recorder = new PowerRecorder(path, part, file, found)
    recorder.stream.write(`${JSON.stringify(await headerOf(found))}\n`)
    recorder.read()
    recorder.timer = setInterval(() => recorder.read(), INTERVAL_MS)
    return recorder
  }

  private read(): void {
    const atNs = hrtime.bigint()
    this.stream.write(`${atNs},${this.found.meters.map((meter) => meter.read()).join(',')}\n`)
    this.readings++
  }

  /** A last reading, and the log under its name. Throws UsageError if it cannot be written. */
  async finish(): Promise<PowerRecording> {
    const { path, part, found, readings } = this
    clearInterval(this.timer)
    this.read()
    this.stream.end()
    await explained(path, 'write', this.done)
    await explained(path, 'write', rename(part, path))
    const hasPower = found.meters.some(({ what }) => what === 'power' || what === 'energy')
    const isForRoot = found.notRead.some((line) => line.endsWith('only root may read it'))
    const missing = [...found.notRead, ...(hasPower ? [] : found.absent), ...(isForRoot ? [ROOT_HINT] : [])]
    return { path, problem: undefined, readings: readings + 1, meters: found.meters.length, hasPower, missing }
  }

  async close(): Promise<void> {
    clearInterval(this.timer)
    this.found.close()
    if (!this.stream.destroyed) this.stream.destroy()
    this.removePart()
  }
}

async function headerOf({ meters, notRead }: FoundMeters): Promise<object> {
  const bootId = await readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => '')
  const clocks = { monotonic_ns: `${hrtime.bigint()}`, realtime_ns: `${BigInt(Date.now()) * 1_000_000n}` }
  return {
    ...{ format: POWER_SCHEMA, clock: 'MONOTONIC', ...clocks, interval_ns: INTERVAL_MS * 1e6 },
    ...{ host: hostname(), kernel_release: release(), boot_id: bootId.trim() },
    meters: meters.map(({ read: _, ...meter }) => meter),
    not_read: notRead,
  }
}

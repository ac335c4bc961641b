import type { DeviceOperator } from '../common/device-work.ts'

const TEXT_MAX = 1000
const WHOLE_US = /^\d{1,15}$/

/** Operators of the ET backend (ggml-et, ET_PERF_END): fields between bars. */
export const EtOperator = {
  /** Undefined for a line without start and end. `start`: in ns of ggml_time_us, CLOCK_MONOTONIC. */
  read(text: string): (DeviceOperator & { readonly start: bigint }) | undefined {
    const fields = new Map(
      text
        .slice(text.indexOf('ET_PERF|') + 8)
        .trim()
        .split('|')
        .map((field): [string, string] => {
          const at = field.indexOf('=')
          return [field.slice(0, at), field.slice(at + 1, at + 1 + TEXT_MAX)]
        }),
    )
    const [start, end, op] = [fields.get('start_us') ?? '', fields.get('end_us') ?? '', fields.get('op') ?? '']
    if (!WHOLE_US.test(start) || !WHOLE_US.test(end) || op === '' || Number(end) < Number(start)) return undefined
    const facts: Record<string, number | string> = {}
    for (const key of ['tensor', 'kernel', 'shape']) if (fields.get(key)) facts[key] = fields.get(key)!
    const flops = Number(fields.get('flops') || NaN)
    if (Number.isSafeInteger(flops) && flops >= 0) facts['flop'] = flops
    return { name: op, timeNs: (Number(end) - Number(start)) * 1000, start: BigInt(start) * 1000n, facts }
  },
}

/** `ggml-hex: HTP0 profile-op NAME|…|usec 123 cycles 456 start 789 mhz 1190.0`; older: fields between ` : `. */
const HEXAGON = /ggml-hex: (\S+) profile-op ([^|:]+?) ?[|:](.*)/
const USEC = /\busec (\d+)/
const CYCLES = /\bstart (\d+)(?:.*\bmhz ([\d.]+))?/
const WRAP = 2 ** 32

/** Operators of the Hexagon backend (GGML_HEXAGON_PROFILE). The processor's counter has 32 bits and wraps. */
export class HexagonOperators {
  /** By device: the counter at its last operator, and cycles since its first one. */
  private readonly devices = new Map<string, { last: number; cycles: number }>()

  /** Undefined for a line that cannot be read; `batch` for a batch of operators, which are printed by themselves. */
  read(
    text: string,
  ): (DeviceOperator & { readonly device: string; readonly startNs: number | undefined }) | 'batch' | undefined {
    const [, device, op, rest] = HEXAGON.exec(text) ?? []
    const usec = USEC.exec(rest ?? '')?.[1]
    if (device === undefined || usec === undefined || usec.length > 12) return undefined
    if (op === 'OPBATCH') return 'batch'
    const fields = rest!.split(/ : |\|/).map((field) => field.trim())
    const facts: Record<string, number | string> = {}
    ;['tensors', 'dims', 'types'].forEach((key, i) => {
      const value = fields[i]
      if (value && value !== '----' && !USEC.test(value)) facts[key] = value.slice(0, TEXT_MAX)
    })
    return { name: op!, timeNs: Number(usec) * 1000, facts, device, startNs: this.start(device, rest!) }
  }

  /** Of its device's first operator, in ns; undefined where the line has no counter or no frequency. */
  private start(device: string, text: string): number | undefined {
    const [, start, mhz] = CYCLES.exec(text) ?? []
    if (start === undefined || !(Number(mhz) > 0)) return undefined
    const counter = Number(start) % WRAP
    const known = this.devices.get(device)
    const delta = known === undefined ? 0 : (counter - known.last + WRAP) % WRAP
    // A little back is an operator that began before the one printed before it.
    const cycles = (known?.cycles ?? 0) + (delta > WRAP / 2 ? delta - WRAP : delta)
    this.devices.set(device, { last: counter, cycles })
    const ns = Math.round((cycles * 1000) / Number(mhz))
    return Number.isSafeInteger(ns) ? Math.max(0, ns) : undefined
  }
}

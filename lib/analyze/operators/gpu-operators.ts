import type { TokenEvent } from '../../model/events.ts'
import type { GpuEvent } from '../../model/gpu-events.ts'
import type { Names } from '../../model/names.ts'
import type { Statistic } from '../common/statistic.ts'
import type { CallWork } from '../model/call-work.ts'
import type { OperatorRows, StepOnGpu } from './rows.ts'

/** Steps of all calls that are held until the phase of their call is known. */
const HELD_MAX = 1 << 17
/** Calls whose events are remembered: their work may be read after them. */
const CALLS_MAX = 4096

/**
 * Collects the operators of GPUs until their call was read, then adds them to the rows and to the work of calls. Its work is complete after the call has returned, or before: a log contains
 * either first. At most {@link HELD_MAX} steps are held, then the oldest call is passed on without its phase.
 */
export class GpuOperators implements Statistic<object, 'token' | 'gpu'> {
  readonly kinds = ['token', 'gpu'] as const
  private readonly events = new Map<number, TokenEvent>()
  private readonly open = new Map<number, StepOnGpu[]>()
  /** The latest step by queue and node: a further part may follow. */
  private latest: { readonly key: string; readonly step: StepOnGpu } | undefined
  private held = 0

  constructor(
    private readonly names: Names,
    private readonly rows: OperatorRows,
    private readonly work: CallWork,
  ) {}

  event(event: TokenEvent | GpuEvent): void {
    if (event.kind === 'gpu') return this.add(event)
    if (event.call < 0) return
    this.events.set(event.call, event)
    if (this.events.size > CALLS_MAX) this.forget(this.events.keys().next().value!)
  }

  private add({ node, call = -1, startNs, endNs, stream }: GpuEvent): void {
    if (!node) return
    const { tensor, fusedTo, backend, part } = node
    const durationNs = endNs - startNs
    const key = `${stream} ${call} ${tensor}`
    if (part > 0 && this.latest?.key === key) {
      this.latest.step.durationNs += durationNs
      return
    }
    const step = { tensor, last: fusedTo ?? tensor, backend: this.names.text(backend), startNs, durationNs }
    this.latest = { key, step }
    const steps = this.open.get(call)
    if (steps) steps.push(step)
    else this.open.set(call, [step])
    if (++this.held > HELD_MAX) this.release(this.open.keys().next().value!)
  }

  finish(): object {
    for (const call of [...this.open.keys()]) this.release(call)
    return {}
  }

  private forget(call: number): void {
    if (this.open.has(call)) this.release(call)
    this.events.delete(call)
  }

  private release(call: number): void {
    const steps = this.open.get(call)!
    this.open.delete(call)
    this.held -= steps.length
    const event = this.events.get(call)
    this.rows.addOnGpu({ event, steps })
    if (event) this.work.add(event, { ...this.rows.latest })
  }
}

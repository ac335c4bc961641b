import type { Arg } from '../../model/args.ts'
import { type JoinedProfile, KERNEL_FIGURES, type KernelProfileEvent } from '../../model/kernel-profiles.ts'
import type { ArgMaker } from '../labels.ts'

/** Arguments of kernels that a profiler of single kernels measured. */
export class ProfileArgs {
  private readonly known = new Map<KernelProfileEvent, readonly Arg[]>()

  constructor(private readonly make: ArgMaker) {}

  /** `ncu_match` and the figures as `ncu_…`; at full also all metrics by their own names. */
  of({ of: event, match }: JoinedProfile): Arg[] {
    const { make } = this
    const how = match === 'launch' ? 'the same launch' : 'another launch of the same name, grid and block'
    return [make.word('ncu_match', how), ...(this.known.get(event) ?? this.figures(event))]
  }

  private figures(event: KernelProfileEvent): readonly Arg[] {
    const { make } = this
    const args = KERNEL_FIGURES.flatMap((figure): Arg[] => {
      const value = event.figures[figure]
      return value === undefined ? [] : [numberArg(make.names.id(`ncu_${figure}`), value)]
    })
    args.push(make.int('ncu_id', event.id), make.arg('ncu_name', { name: event.name }))
    for (const [key, value] of event.metrics ?? []) args.push(numberArg(key, value))
    this.known.set(event, args)
    return args
  }
}

const numberArg = (key: number, value: number): Arg =>
  Number.isSafeInteger(value) ? { key, int: value } : { key, double: value }

import { DefaultMap } from '../../model/default-map.ts'
import type { InputEvent } from '../../model/events.ts'
import { type Topology, topologyOf } from '../../model/topology.ts'
import type { RoleTable } from '../calls/roles.ts'
import type { CallParts, Statistic } from '../common/statistic.ts'
import type { CallOperators } from '../graph/operators/call-operators.ts'
import type { CoreKindTimes, TimeOnKind } from './figures.ts'

/** Of a core that is not known. */
const UNKNOWN_KIND = ''

type Sums = DefaultMap<string, { executions: number; timeNs: number }>

/** Sums the time of operators by the kind of the core that computed them, where a machine has several kinds. */
export class CoreKinds implements Statistic<{ readonly coreKinds: CoreKindTimes | null }, 'input'> {
  readonly kinds = ['input'] as const
  private topology: Topology | undefined
  /** By role, and in each by kind. */
  private readonly sums = new DefaultMap<number, Sums>(() => new DefaultMap(() => ({ executions: 0, timeNs: 0 })))
  private allNs = 0
  private assumedNs = 0

  /** `cpusOf`: the CPUs on which the workers of the call that is read began it. */
  constructor(
    private readonly roles: RoleTable,
    private readonly cpusOf: () => readonly number[],
  ) {}

  event({ attributes }: InputEvent): void {
    const topology = topologyOf(attributes)
    const kinds = new Set([...(topology?.values() ?? [])].map(({ kind }) => kind))
    if (kinds.size > 1) this.topology = topology
  }

  /** The kind of core that computed an operator of the call that is read; undefined: the machine has one kind. */
  kindOf({ event, worker, cpu }: CallOperators, i: number): string | undefined {
    if (!this.topology) return undefined
    const began = event ? this.cpusOf()[worker[i]!] : undefined
    const on = cpu[i]! >= 0 ? cpu[i]! : (began ?? -1)
    return this.topology.get(on)?.kind ?? UNKNOWN_KIND
  }

  call({ operators, weight }: CallParts): void {
    if (!this.topology) return
    for (let i = 0; i < operators.count; i++) {
      const kind = this.kindOf(operators, i)!
      const sum = this.sums.of(this.roles.of(operators.tensor[i]!, operators.last[i]!)).of(kind)
      const ns = (operators.endNs[i]! - operators.startNs[i]!) * weight
      sum.executions += weight
      sum.timeNs += ns
      this.allNs += ns
      if (operators.cpu[i]! < 0 && kind !== UNKNOWN_KIND) this.assumedNs += ns
    }
  }

  finish(): { readonly coreKinds: CoreKindTimes | null } {
    if (this.allNs === 0) return { coreKinds: null }
    const operators = [...this.sums].map(([number, sums]) => {
      const { role, op } = this.roles.role(number)
      return { role, op, kinds: timesOf(sums) }
    })
    const timeOf = ({ kinds }: { readonly kinds: readonly TimeOnKind[] }) =>
      kinds.reduce((sum, { time_ns }) => sum + time_ns, 0)
    return {
      coreKinds: {
        assumed_share: this.assumedNs / this.allNs,
        operators: operators.sort((a, b) => timeOf(b) - timeOf(a)),
      },
    }
  }
}

/** The fastest kind first. */
export const CORE_KINDS: readonly string[] = ['P', 'E', 'LP', UNKNOWN_KIND]

/** Times by kind, in the order of {@link CORE_KINDS}. */
export function timesOf(sums: Iterable<readonly [kind: string, { executions: number; timeNs: number }]>): TimeOnKind[] {
  return [...sums]
    .map(([kind, { executions, timeNs }]) => ({ kind, executions, time_ns: timeNs }))
    .sort((a, b) => CORE_KINDS.indexOf(a.kind) - CORE_KINDS.indexOf(b.kind))
}

import type { Finding, Undetermined } from '../common/figures.ts'
import type { Difference } from '../compare/figures.ts'

/** Version of {@link ScalingFigures}. */
export const SCALING_SCHEMA = 'ggml2perfetto.scaling/1'

/** Speed of several runs of one program by their numbers of workers. */
export interface ScalingFigures {
  readonly schema: typeof SCALING_SCHEMA
  /** The runs, in the order given. Workers are those that computed in the phase; null: it was not recorded. */
  readonly runs: readonly {
    readonly name: string
    readonly decode_workers: number | null
    readonly prefill_workers: number | null
    /** Rules whose findings say that something other than the number of threads made it slow. */
    readonly disturbed_by: readonly string[]
  }[]
  /**
   * In what other runs differ from the first one, apart from the number of workers, that explains other speeds by itself, such as another
   * model. With any, the runs are not compared.
   */
  readonly differences: readonly Difference[]
  /** Below which gain another thread does not pay: share of the speed of one thread in the run with the fewest. */
  readonly gain_share_min: number
  readonly decode: PhaseScaling | null
  readonly prefill: PhaseScaling | null
  /** Roles of decode, or of prefill where there is none; most time first. */
  readonly roles: readonly RoleScalingFigures[]
  /** Where more threads do not pay. */
  readonly findings: readonly Finding[]
  readonly undetermined: readonly Undetermined[]
}

/** Speeds by number of workers. */
export interface SpeedByWorkers {
  /** Ascending; runs with the same number are averaged. */
  readonly counts: readonly WorkerCount[]
  /** The number from which another thread does not pay; null where it paid up to the largest one, and where it is not known. */
  readonly knee: number | null
}

/** Speed of a phase by number of workers. Without a law that describes its speeds (`fit`), its `knee` is not known. */
export interface PhaseScaling extends SpeedByWorkers {
  readonly fit: ScalingFit | null
}

/** Speed with a number of workers. */
export interface WorkerCount {
  readonly workers: number
  readonly tokens_per_s: number
  /** To the smallest number of workers. */
  readonly speedup: number
  /** Speedup by the number of workers, relative to the smallest: 1 is perfect scaling. */
  readonly efficiency: number
  /** What each further thread added since the number before, as a share of the speed of one thread; null for the first. */
  readonly gain_share: number | null
}

/** A role: its tokens per second would be those of a model that has only this role. */
export interface RoleScalingFigures extends SpeedByWorkers {
  readonly role: string
  readonly op: string
  readonly phase: 'decode' | 'prefill'
}

/**
 * The Universal Scalability Law (N. J. Gunther, "A General Theory of Computational Scalability Based on Rational Functions",
 * arXiv:0808.1431): X(n) = λ n / (1 + σ (n − 1) + κ n (n − 1)). With κ = 0 it is Amdahl's law with the serial share σ.
 */
export interface ScalingFit {
  readonly model: 'usl'
  /** λ: speed of one thread, in tokens per second. */
  readonly tokens_per_s_of_one: number
  /** σ: contention, the share of the work that is done one after the other. */
  readonly contention: number
  /** κ: coherency, the cost of each pair of threads, such as barriers. Above 0, the speed has a maximum. */
  readonly coherency: number
  /** Coefficient of determination of the speeds, of more numbers of workers than the law has parameters. */
  readonly r2: number
  /** Number of workers with the largest speed: √((1 − σ) / κ), at least 1; null where the speed grows without end. */
  readonly workers_of_peak: number | null
}

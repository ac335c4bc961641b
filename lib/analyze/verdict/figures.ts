/** The answer in one line: how fast, how far from what the machine allows, and the largest cause that can be removed. */
export interface RunVerdict {
  /** What the run is judged by; `none`: nothing can be said. */
  readonly subject: 'decode' | 'prompt' | 'requests' | 'calls' | 'gpu' | 'benchmarks' | 'model' | 'none'
  /** One line, without a full stop. */
  readonly sentence: string
  /** The speed in it; null: not known. Of requests, the median of their latency. */
  readonly rate: number | null
  readonly unit: 'tok/s' | 'ns' | 'busy' | null
  /** What the machine allows, in the same unit; null: not known, or not certain. */
  readonly ceiling: number | null
  /** `rate` ÷ `ceiling`: of all time, what the program does between calls included. */
  readonly ceiling_share: number | null
  /** The same while the worker that was preempted most had its CPU; null: it was hardly preempted, or that is not known. */
  readonly ceiling_running_share: number | null
  /** What limits at the ceiling. */
  readonly ceiling_by: 'memory' | 'arithmetic' | null
  /** The largest cause that can be removed; null: no finding is one. */
  readonly cause: RunVerdictCause | null
  readonly confidence: 'high' | 'medium' | 'low'
  readonly confidence_reason: string
  /** How to get what is missing: a command; null: nothing is. `<logs>` are the inputs. */
  readonly hint: string | null
}

/** A finding that the verdict names. */
export interface RunVerdictCause {
  readonly rule: string
  readonly time_ns: number
  /** Of the time of the calls of its phase, or of all calls; of the time of a GPU; null: its part is not known. */
  readonly share: number | null
  readonly confidence: 'high' | 'medium' | 'low'
}

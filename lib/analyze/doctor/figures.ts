/** Something to change, and what it would give. */
export interface Advice {
  /** What was found. */
  readonly sentence: string
  readonly to_do: string
  /** The rule that found it (docs/reference/findings.md); null: runs with other numbers of threads. */
  readonly rule: string | null
  /** The phase that it is about; null: the run as a whole. */
  readonly phase: string | null
  /** Of the time of calls of this phase, what it explains: no change can give more. Null: not known, or it is what the machine permits. */
  readonly explains_share: number | null
  /** What it would give, a line each; none where that cannot be said. */
  readonly gives: readonly string[]
  /** `measured`: by other runs. `predicted`: from this run, with an interval of 90 %. Null without `gives`. */
  readonly by: 'measured' | 'predicted' | null
}

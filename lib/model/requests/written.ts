import type { RequestEvent, TaskEvent, TaskValues } from '../request-events.ts'

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] }

/** Figures and times of a request that follow from what its server wrote; -1 = not known. Times in ns. */
export interface Inference {
  /** It begins with the prompt. */
  readonly promptNs: number
  readonly firstTokenNs: number
  /** Its prompt was processed up to then, or its first token was generated. */
  readonly promptUntilNs: number
  /** Its last token was generated, as far as is written. */
  readonly lastTokenNs: number
  readonly promptTokens: number
  readonly reusedTokens: number
  readonly generatedTokens: number
  readonly draftedTokens: number
  readonly acceptedTokens: number
}

/** What a server wrote of one request. Times in ns. */
export class Written {
  /** Its figures at the end, and those that do not change. */
  figures: Mutable<TaskValues> = {}
  private promptAtNs = -1
  private firstTokenAtNs = -1
  private timingsAtNs = -1
  /** A part of the prompt was processed, after this time from its begin. */
  private progressAtNs = -1
  private progressNs: number | undefined
  private generatedAtNs = -1
  /** Generated tokens so far. */
  private generated = -1
  private drafted = 0
  private accepted = 0
  private isShifted = false

  /** Takes a step of its task. */
  take({ what, atNs, values }: TaskEvent): void {
    if (what === 'prompt') this.promptAtNs = atNs
    if (what === 'timings') this.timingsAtNs = atNs
    if (what === 'shift') this.isShifted = true
    if (!values) return
    if (what === 'progress') {
      this.generated = values.generatedTokens ?? this.generated
      if (values.generatedTokens === 1) this.firstTokenAtNs = atNs
      if (values.generatedTokens !== undefined) this.generatedAtNs = atNs
      if (values.promptNs !== undefined) this.processed(values.promptNs, atNs)
    } else if (what === 'draft') {
      this.drafted += values.draftedTokens ?? 0
      this.accepted += values.acceptedTokens ?? 0
    } else if (what !== 'checkpoint' && what !== 'shift') {
      for (const [key, value] of Object.entries(values)) {
        if (value !== undefined) this.figures[key as keyof TaskValues] = value
      }
    }
  }

  private processed(promptNs: number, atNs: number): void {
    this.progressNs = promptNs
    this.progressAtNs = atNs
  }

  /** Its durations as its server measured them; before its figures are written, those of its prompt so far. */
  get stated(): TaskValues {
    const { figures, progressNs } = this
    return figures.promptNs === undefined && progressNs !== undefined ? { ...figures, promptNs: progressNs } : figures
  }

  /** What follows for a request of which no call is known. */
  infer(outcome: RequestEvent['outcome']): Inference {
    const { figures, timingsAtNs, firstTokenAtNs, promptAtNs, progressAtNs, progressNs, drafted, accepted } = this
    const { promptNs: tookNs, generationNs, processedTokens, generatedTokens, contextTokens } = figures
    const isTimed = timingsAtNs >= 0 && generationNs !== undefined
    const firstTokenNs = firstTokenAtNs >= 0 || !isTimed ? firstTokenAtNs : timingsAtNs - generationNs
    const isBegunBy = firstTokenNs >= 0 && tookNs !== undefined
    // The last token is not in the slot's tokens.
    const isWhole = outcome === 'complete' && !this.isShifted && (generatedTokens ?? 0) > 0
    const sum = isWhole && contextTokens !== undefined ? contextTokens - generatedTokens! + 1 : -1
    const promptTokens = figures.promptTokens ?? (sum >= (processedTokens ?? 1) ? sum : -1)
    const rest = promptTokens >= 0 && processedTokens !== undefined ? promptTokens - processedTokens : -1
    return {
      promptNs:
        promptAtNs >= 0
          ? promptAtNs
          : isBegunBy
            ? firstTokenNs - tookNs
            : progressNs === undefined
              ? -1
              : progressAtNs - progressNs,
      firstTokenNs,
      promptUntilNs: Math.max(firstTokenNs, progressAtNs),
      lastTokenNs: Math.max(timingsAtNs, this.generatedAtNs),
      promptTokens,
      reusedTokens: figures.reusedTokens ?? rest,
      generatedTokens: generatedTokens ?? this.generatedSoFar(outcome),
      draftedTokens: drafted,
      acceptedTokens: accepted,
    }
  }

  /** The generated tokens of a request that ended without figures: an embedding, or its client closed the connection. */
  private generatedSoFar(outcome: RequestEvent['outcome']): number {
    const { generated, figures, isShifted } = this
    const { promptTokens, contextTokens = -1 } = figures
    if (generated >= 0) return generated
    if (outcome === 'complete' || outcome === 'error') return 0
    if (isShifted || promptTokens === undefined || outcome === 'unfinished') return -1
    return contextTokens < promptTokens ? -1 : contextTokens - promptTokens + 1
  }
}

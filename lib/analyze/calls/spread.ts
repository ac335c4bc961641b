import { DDSketch } from '@datadog/sketches-js'
import type { Distribution } from '../common/figures.ts'
import { distributionOf, RELATIVE_ERROR } from '../common/sketches.ts'
import type { Jitter } from './figures.ts'

/** The distribution of TPOT over tokens, and its jitter. */
export class Spread {
  private readonly sketch = new DDSketch({ relativeAccuracy: RELATIVE_ERROR })
  private tokens = 0
  private sumNs = 0
  /** Mean and sum of squared deviations so far (West 1979). */
  private meanNs = 0
  private squares = 0
  private latestNs = 0
  private differences = 0
  private sumOfDifferences = 0

  /** Adds a call whose tokens took `spentNs` in all. `isSuccessor`: it comes right after the call that was added before. */
  add(tokens: number, spentNs: number, isSuccessor: boolean): void {
    const tpotNs = spentNs / tokens
    this.sketch.accept(tpotNs, tokens)
    this.tokens += tokens
    this.sumNs += spentNs
    const deviation = tpotNs - this.meanNs
    this.meanNs += (deviation * tokens) / this.tokens
    this.squares += tokens * deviation * (tpotNs - this.meanNs)
    if (isSuccessor) {
      this.differences++
      this.sumOfDifferences += Math.abs(tpotNs - this.latestNs)
    }
    this.latestNs = tpotNs
  }

  get distribution(): Distribution | null {
    return distributionOf(this.sketch, this.tokens, this.sumNs)
  }

  get jitter(): Jitter {
    const { tokens, squares, differences, sumOfDifferences } = this
    return {
      standard_deviation_ns: tokens === 0 ? 0 : Math.sqrt(squares / tokens),
      mean_difference_ns: differences === 0 ? null : sumOfDifferences / differences,
      differences,
    }
  }
}

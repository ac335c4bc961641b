import type { BenchmarkEvent, TraceEvent } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'
import type { EventPass } from '../../model/pass.ts'
import { plural } from '../../model/units.ts'
import type { Undetermined } from '../common/figures.ts'
import type { BenchmarkFigures } from './figures.ts'

/** Tests that are held; further ones are counted. */
const TESTS_MAX = 1 << 14

/** Tests of one input. */
export interface BenchmarksOfInput {
  readonly figures: readonly BenchmarkFigures[]
  readonly undetermined: readonly Undetermined[]
}

/** Collects speeds that programs measured themselves. */
export class BenchmarkPass implements EventPass<BenchmarksOfInput> {
  private readonly figures: BenchmarkFigures[] = []
  private source = ''
  private further = 0

  constructor(private readonly names: Names) {}

  take(batch: readonly TraceEvent[]): void {
    for (const event of batch) {
      if (event.kind === 'benchmark') this.add(event)
      else if (event.kind === 'input') this.source = event.format
    }
  }

  finish(): BenchmarksOfInput {
    const why = `the figures of ${plural(this.further, 'further test')} are not in it`
    return { figures: this.figures, undetermined: this.further > 0 ? [{ what: 'benchmarks', why }] : [] }
  }

  private add(event: BenchmarkEvent): void {
    if (this.figures.length >= TESTS_MAX) {
      this.further++
      return
    }
    const { promptTokens, generatedTokens, depth, samplesNs, stated, parameters, startNs, endNs } = event
    const tokens = Math.max(0, promptTokens) + Math.max(0, generatedTokens)
    const speeds = samplesNs.map((ns) => (tokens * 1e9) / ns)
    const timeNs = samplesNs.length > 0 ? mean(samplesNs) : endNs - startNs
    const speed = speeds.length > 0 ? mean(speeds) : stated.mean
    const deviation = speeds.length > 0 ? deviationOf(speeds) : stated.deviation
    this.figures.push({
      test: this.names.text(event.name),
      source: this.source,
      prompt_tokens: promptTokens < 0 ? null : promptTokens,
      generated_tokens: generatedTokens < 0 ? null : generatedTokens,
      depth,
      repetitions: samplesNs.length || null,
      time_ns: timeNs,
      tokens_per_s: speed >= 0 ? speed : (tokens * 1e9) / timeNs,
      deviation_tokens_per_s: deviation >= 0 ? deviation : null,
      samples_ns: samplesNs,
      parameters,
    })
  }
}

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length

/** NaN for a single value. */
function deviationOf(values: readonly number[]): number {
  const middle = mean(values)
  return Math.sqrt(values.reduce((sum, value) => sum + (value - middle) ** 2, 0) / (values.length - 1))
}

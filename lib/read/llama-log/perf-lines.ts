import { type BenchmarkEvent, Inferred } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'
import { AllFacts } from '../common/all-facts.ts'

const PERF = /^(?:llama_perf_context_print|llama_perf_sampler_print|llama_print_timings|common_perf_print): *(\S.*)/
const TIMES = /^(prompt eval|eval) time = +([\d.]+) ms \/ +(\d+) (?:tokens|runs)/
const FACTS = /^(load|sampling|samplers|total|unaccounted) time = +([\d.]+) ms/
const REUSED = /^graphs reused = +(\d+)/

/** Reads the sums that llama.cpp prints of a context at the end of a run. */
export class PerfLines {
  /** Of all contexts: a run with a draft model prints those of both. */
  readonly facts = new AllFacts()
  private readonly tests: { name: string; ns: number; tokens: number }[] = []
  private isWhole = false
  private count = 0

  constructor(private readonly names: Names) {}

  /** False for another line. */
  read(text: string): boolean {
    const line = PERF.exec(text.trim())?.[1]
    if (line === undefined) return false
    const [, name, ms, tokens] = TIMES.exec(line) ?? []
    if (name !== undefined) {
      const ns = Math.round(Number(ms) * 1e6)
      if (ns > 0 && Number(tokens) > 0 && Number.isSafeInteger(ns))
        this.tests.push({ name, ns, tokens: Number(tokens) })
      this.isWhole = name === 'eval'
      return true
    }
    const [, what, time] = FACTS.exec(line) ?? []
    if (what !== undefined) this.facts.add(`${what}_time_ms`, Number(time))
    const reused = REUSED.exec(line)?.[1]
    if (reused !== undefined) this.facts.add('graphs_reused', Number(reused))
    return true
  }

  /** The speeds of a context, once all of its times were read. `atNs`: when they were printed: they end then, one after the other. */
  take(atNs: number): readonly BenchmarkEvent[] {
    if (!this.isWhole) return []
    this.isWhole = false
    const tests = this.tests.splice(0)
    const sumNs = tests.reduce((sum, { ns }) => sum + ns, 0)
    let startNs = Math.max(0, atNs - sumNs)
    return tests.map(({ name, ns, tokens }): BenchmarkEvent => {
      const counts =
        name === 'eval' ? { promptTokens: 0, generatedTokens: tokens } : { promptTokens: tokens, generatedTokens: 0 }
      const event: BenchmarkEvent = {
        ...{
          kind: 'benchmark',
          test: this.count++,
          name: this.names.id(name),
          startNs,
          endNs: startNs + ns,
          ...counts,
        },
        ...{ depth: 0, samplesNs: [], stated: { mean: (tokens * 1e9) / ns, deviation: -1 }, parameters: {} },
        inferred: Inferred.Laid,
      }
      startNs += ns
      return event
    })
  }
}

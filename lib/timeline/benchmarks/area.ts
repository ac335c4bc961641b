import type { BenchmarkEvent } from '../../model/events.ts'
import type { Label } from '../../sink/label.ts'
import type { TrackContext } from '../context.ts'
import type { NestedRows } from '../nested.ts'

/** Draws tests of benchmarks: a slice for each, with its repetitions in it. */
export class BenchmarkArea {
  private rows: NestedRows | undefined

  constructor(private readonly context: TrackContext) {}

  take(event: BenchmarkEvent): void {
    const { tracks, make, names } = this.context
    this.rows ??= tracks.nested('benchmarks', {})
    const { startNs, endNs, samplesNs, promptTokens, generatedTokens, depth, stated, parameters } = event
    const name = names.text(event.name)
    const inferred = make.inferred(event.inferred)
    const label = (title: string, args: Label['extra']): Label => ({
      ...{ name: title, category: 'benchmark', colour: event.name, extra: args && make.shown(args) },
    })
    const sizes = { test: event.test, prompt_tokens: promptTokens, generated_tokens: generatedTokens, depth }
    const args = Object.entries(sizes).flatMap(([key, value]) => (value >= 0 ? [make.int(key, value)] : []))
    if (samplesNs.length > 0) args.push(make.int('repetitions', samplesNs.length))
    const { mean, deviation } = stated
    if (mean >= 0) args.push(make.double('tokens_per_s', mean))
    if (deviation >= 0) args.push(make.double('tokens_per_s_deviation', deviation))
    for (const [key, value] of Object.entries(parameters))
      args.push(typeof value === 'number' ? make.int(key, value) : make.word(key, value))
    this.rows.place(startNs, endNs, label(name, [...args, ...inferred]))
    const tokens = Math.max(0, promptTokens) + Math.max(0, generatedTokens)
    samplesNs.reduce((atNs, ns, i) => {
      const speed = tokens > 0 ? [make.double('tokens_per_s', (tokens * 1e9) / ns)] : []
      const args = [make.int('test', event.test), make.int('repetition', i), ...speed, ...inferred]
      this.rows!.place(atNs, atNs + ns, label(`${name} ${i + 1}`, args))
      return atNs + ns
    }, startNs)
  }

  finish(): void {
    this.rows?.finish()
  }
}

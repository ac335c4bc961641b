/** A value of a counter, from a time on. */
export interface Sample {
  readonly atNs: number
  readonly value: number
}

const PIXEL_NS = 50e3

/**
 * What is drawn of a counter that changes with each operator: its changes; of those in a span of 50 µs, which begins with a change, the
 * largest and the last one.
 */
export function shownSamples(samples: readonly Sample[], isFull: boolean): Sample[] {
  if (isFull) return changes(samples)
  const spans: Sample[][] = []
  for (const sample of samples) {
    const span = spans.at(-1)
    const [first, last] = [span?.[0], span?.at(-1)]
    if (sample.value === last?.value && sample.atNs - first!.atNs < PIXEL_NS) continue
    if (!last || sample.atNs - first!.atNs >= PIXEL_NS || sample.atNs < last.atNs) {
      if (sample.value !== last?.value) spans.push([sample])
    } else span!.push(sample)
  }
  const shown: Sample[] = []
  for (const span of spans) {
    const last = span.at(-1)!
    const largest = span.reduce((a, b) => (b.value > a.value ? b : a))
    if (largest.atNs < last.atNs && largest.value > (shown.at(-1)?.value ?? -Infinity)) shown.push(largest)
    shown.push(last)
  }
  return changes(shown)
}

const changes = (samples: readonly Sample[]) => samples.filter(({ value }, i) => value !== samples[i - 1]?.value)

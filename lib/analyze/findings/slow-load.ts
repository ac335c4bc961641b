import { confidenceOf, type Limit, type Rule } from './rule.ts'
import { percent, time } from './words.ts'

const TIME: Limit = { value: 2e9, why: 'ns of one stage: a program that starts once may take so long' }

const RATE: Limit = {
  value: 5e8,
  why: 'bytes a second: an SSD reads more, and the page cache ten times as much; of stages whose bytes are known',
}

/** A stage of loading the model is slow. */
export const slowLoad: Rule = {
  id: 'slow-load',
  title: 'A stage of loading is slow',
  limits: { time: TIME, rate: RATE },
  advice:
    'Weights: they are read from a slow disk or a network: copy the file to a local SSD, or read it once before (cat); without --no-mmap only ' +
    'what is used is read. Reserving: less context (-c), fewer slots (-np)',
  look: (analysis) => {
    const { load } = analysis
    if (!load || load.time_ns === 0) return []
    const slow = load.stages.toSorted((a, b) => b.time_ns - a.time_ns)[0]!
    const { stage, time_ns, bytes_per_s } = slow
    const rate = bytes_per_s === null ? '' : ` at ${Math.round(bytes_per_s / 1e6)} MB/s`
    const sentence = `loading takes ${time(load.time_ns)}, ${percent(time_ns / load.time_ns)} of it in ${stage}${rate}`
    if (time_ns < TIME.value || (bytes_per_s ?? 0) > RATE.value) return [{ figure: sentence }]
    const finding = {
      sentence,
      time_ns,
      ...confidenceOf(analysis, Infinity),
      confidence_reason: 'measured',
      evidence: {
        ...{ stage, stage_ns: time_ns, load_ns: load.time_ns },
        ...(slow.bytes !== null && { stage_bytes: slow.bytes, bytes_per_s: bytes_per_s! }),
      },
      check: { command: 'ggml2perfetto stats <logs>', evidence: 'stage_ns' },
    }
    return [{ figure: sentence, finding }]
  },
}

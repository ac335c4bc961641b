import type { RequestPart } from '../../model/events.ts'
import { Fits } from '../calls/fits.ts'
import type { DraftLength, SpeculationFigures } from './figures.ts'

/** Lengths of drafts with separate figures; longer drafts count with the longest. */
const LENGTH_MAX = 64
/** Decode calls without a draft from which the time of a token without drafts is taken. */
const PLAIN_MIN = 3

interface OfLength {
  cycles: number
  accepted: number
  verifyNs: number
}

/** Drafts and their verification, against decode calls without drafts. */
export class Speculation {
  private readonly lengths: OfLength[] = []
  private cycles = 0
  private drafted = 0
  private accepted = 0
  private readonly withDraft = { draft: 0, verify: 0, sample: 0 }
  private readonly plain = { calls: 0, decode: 0, sample: 0 }
  /** Time of verifications against their tokens. */
  private readonly fits = new Fits()

  /** Adds the parts of a request, with the time of each that counts. */
  add(parts: readonly RequestPart[], timeOf: (part: RequestPart, at: number) => number): void {
    let sampled: { sample: number } | undefined
    for (const [at, part] of parts.entries()) {
      const ns = timeOf(part, at)
      switch (part.what) {
        case 'draft':
          this.withDraft.draft += ns
          sampled = this.withDraft
          break
        case 'verify':
          this.verify(part, ns)
          sampled = this.withDraft
          break
        case 'decode':
          sampled = part.othersTokens > part.others ? undefined : this.plain
          if (sampled) this.plain.calls++
          if (sampled) this.plain.decode += ns
          break
        case 'prefill':
          sampled = undefined
          break
        case 'sample':
          if (sampled) sampled.sample += ns
      }
    }
  }

  private verify({ tokens, accepted }: RequestPart, ns: number): void {
    const drafted = Math.max(tokens - 1, 0)
    const length = Math.min(drafted, LENGTH_MAX)
    while (this.lengths.length <= length) this.lengths.push({ cycles: 0, accepted: 0, verifyNs: 0 })
    const ofLength = this.lengths[length]!
    ofLength.cycles++
    ofLength.accepted += Math.max(accepted, 0)
    ofLength.verifyNs += ns
    this.cycles++
    this.drafted += drafted
    this.accepted += Math.max(accepted, 0)
    this.withDraft.verify += ns
    if (tokens > 0) this.fits.add(tokens, [ns], 1)
  }

  /** Null without verified drafts. */
  finish(): SpeculationFigures | null {
    const { cycles, drafted, accepted, withDraft, lengths } = this
    if (cycles === 0) return null
    const generated = accepted + cycles
    const withNs = (withDraft.draft + withDraft.verify + withDraft.sample) / generated
    const without = this.without(withDraft.sample / generated)
    return {
      cycles,
      drafted_tokens: drafted,
      accepted_tokens: accepted,
      acceptance_share: drafted > 0 ? accepted / drafted : null,
      generated_tokens: generated,
      draft_ns: withDraft.draft,
      verify_ns: withDraft.verify,
      sample_ns: withDraft.sample,
      with_token_ns: withNs,
      without_token_ns: without?.ns ?? null,
      without_from: without?.from ?? null,
      without_calls: without?.calls ?? 0,
      speedup: without && withNs > 0 ? without.ns / withNs : null,
      by_length: lengths.flatMap(({ cycles, accepted, verifyNs }, drafted): DraftLength[] =>
        cycles === 0
          ? []
          : [
              {
                ...{ drafted, cycles, accepted_tokens: accepted },
                acceptance_share: drafted > 0 ? accepted / (drafted * cycles) : 0,
                verify_mean_ns: verifyNs / cycles,
              },
            ],
      ),
    }
  }

  /** The time of a token without drafts. `sampleNs`: sampling of a token, where it is not known of plain calls. */
  private without(
    sampleNs: number,
  ): { ns: number; from: NonNullable<SpeculationFigures['without_from']>; calls: number } | undefined {
    const { calls, decode, sample } = this.plain
    if (calls >= PLAIN_MIN) return { ns: (decode + sample) / calls, from: 'plain decode calls', calls }
    if (!this.fits.isDetermined) return undefined
    const { at_0_ns, ms_per_1000_tokens } = this.fits.fit(0)
    const ns = at_0_ns + ms_per_1000_tokens * 1000 + sampleNs
    return ns > 0 ? { ns, from: 'verify calls, extrapolated to one token', calls: this.fits.points } : undefined
  }
}

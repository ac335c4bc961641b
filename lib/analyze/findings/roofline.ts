import { plural } from '../../model/units.ts'
import type { Roofline } from '../model/figures.ts'
import { found, type Limit, type Rule } from './rule.ts'
import { number, percent } from './words.ts'

/** From this part of the roof on, the roof is the limit. */
export const ROOF: Limit = {
  value: 0.6,
  why: 'kernels of ggml reach 60 to 95 % of the limit that applies; below it something else is the cause',
}

/** `memory` where that is the limit; far below the roof, where it is not, `memory side` of the ridge. */
export function limitOf({ bound, roof_share }: Roofline): string {
  if (bound === null || bound === 'near the ridge') return bound ?? ''
  return (roof_share ?? 0) < ROOF.value ? `${bound} side` : bound
}

/** A phase runs at the limit of the machine: of its memory or of its arithmetic. */
export const roofline: Rule = {
  id: 'roofline',
  title: 'A phase is as fast as the machine permits',
  limits: { roof: ROOF },
  isLimit: true,
  advice:
    'Memory-bound: more threads do not help; a smaller type of the weights, several sequences in a batch or speculative decoding do. ' +
    'Compute-bound: more cores, another kernel library (BLIS, AMX) or a GPU do',
  look: (analysis) =>
    analysis.rooflines
      .filter(({ scope, roof_share }) => scope === 'phase' && roof_share !== null)
      .flatMap((line) => {
        const { what, phase, bound, roof_share, time_ns, bytes_per_s, flop_per_s, intensity } = line
        const isMemory = bound === 'memory'
        const share = isMemory ? line.mbu_share! : bound === 'compute' ? line.mfu_share! : roof_share!
        const speed = isMemory ? `${number(bytes_per_s! / 1e9)} GB/s` : `${number(flop_per_s / 1e9)} GFLOP/s`
        const sentence = `${what} is ${bound === 'near the ridge' ? 'bound by memory and arithmetic' : `${bound}-bound`}: ${speed}, ${percent(share)} of this machine's peak`
        if (share < ROOF.value) return { figure: `${what} reaches ${percent(share)} of this machine's peak` }
        return found(sentence, {
          time_ns,
          confidence: share > 1 ? 'low' : 'high',
          confidence_reason: line.note ?? `${plural(line.count, 'call')} against the peak of the machine`,
          evidence: {
            phase: phase ?? what,
            roof_share: share,
            flop_per_s,
            ...(bytes_per_s !== null && { bytes_per_s }),
            ...(intensity !== null && { intensity }),
          },
          check: { command: 'ggml2perfetto stats <logs>', evidence: 'roof_share' },
        })
      }),
}

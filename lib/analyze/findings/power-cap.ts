import { lookAtCap } from './capped.ts'
import { found, type Limit, type Rule } from './rule.ts'

const SHARE: Limit = {
  value: 0.1,
  why: 'GPUs touch their limit for moments at the start of kernels; a tenth of the time costs clock all along',
}
const NEAR: Limit = {
  value: 0.97,
  why: 'of the limit, on average, where the tool does not report it: regulation stays some percent below the limit',
}

/** A device runs at its power limit: its clock is below what it could be. */
export const powerCap: Rule = {
  id: 'power-cap',
  title: 'A device is held at its power limit',
  limits: { share: SHARE, near: NEAR },
  advice:
    'The clock cannot rise further with this limit: raise it (nvidia-smi -pl, amd-smi set --power-cap, the BIOS, the mode of a laptop or a Jetson), or accept it: ' +
    'memory-bound phases (decode) lose little, and energy per token is better below the highest clock',
  look: (analysis) =>
    (analysis.power?.devices ?? []).flatMap((device) => {
      const { power_capped: capped, power_w, power_limit_w: limit } = device
      const limited = limit === null ? 'its power limit' : `its power limit of ${Math.round(limit)} W`
      if (capped) return lookAtCap(analysis, device, capped, SHARE, limited)
      if (!power_w || limit === null || limit <= 0) return []
      const share = power_w.mean / limit
      const figure = `${device.device} takes ${Math.round(power_w.mean)} W on average, of ${limited}`
      if (share < NEAR.value) return [{ figure }]
      return found(figure, {
        sentence: `${figure}: it is held there`,
        time_ns: 0,
        confidence: 'medium',
        confidence_reason: 'from the power alone: the log does not contain what holds the clock down',
        evidence: { device: device.device, limit_share: share, mean_w: power_w.mean, power_limit_w: limit },
        check: { command: 'ggml2perfetto stats <logs>', evidence: 'limit_share' },
      })
    }),
}

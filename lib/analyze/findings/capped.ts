import type { Analysis, CappedFigures, PowerDevice } from '../analysis.ts'
import { found, type Limit, type Looked } from './rule.ts'
import { percent } from './words.ts'

/** A device whose clock is held down by what is named; a finding where the share of time is at least the limit. */
export function lookAtCap(
  { calls }: Analysis,
  device: PowerDevice,
  capped: CappedFigures,
  limit: Limit,
  by: string,
): Looked[] {
  const { share, time_ns, clock_hz: clock, free_clock_hz: free } = capped
  const best = free ?? device.max_clock_hz
  const slower = clock !== null && best !== null && best > clock ? 1 - clock / best : null
  const clocks = slower === null ? '' : `: ${MHz(clock!)} instead of ${MHz(best!)}`
  const figure = `${device.device} is held down by ${by} in ${percent(share)} of the ${calls.count > 0 ? 'time of calls' : 'readings'}${clocks}`
  if (share < limit.value) return [{ figure }]
  return found(figure, {
    // At most: what waits for memory does not need the clock.
    time_ns: Math.round(time_ns * (slower ?? 0)),
    confidence: 'medium',
    confidence_reason:
      slower === null
        ? 'the time that it costs is not known: the log contains no clocks'
        : 'the time is an upper bound: what waits for memory does not need the clock',
    evidence: {
      ...{ device: device.device, capped_share: share, capped_ns: time_ns },
      ...(clock !== null && { clock_hz: clock }),
      ...(best !== null && { free_clock_hz: best }),
      ...(device.power_limit_w !== null && { power_limit_w: device.power_limit_w }),
      ...(device.temperature_c !== null && { hottest_c: device.temperature_c.max }),
    },
    check: { command: 'ggml2perfetto stats <logs>', evidence: 'capped_share' },
  })
}

const MHz = (Hz: number) => `${Math.round(Hz / 1e6)} MHz`

import type { CappedFigures, PowerDevice } from '../analysis.ts'
import type { Limit, Looked } from './rule.ts'
import { percent } from './words.ts'

/** A finding where the share of time is at least the limit. */
export function held({ share }: CappedFigures, limit: Limit, looked: Required<Looked>): Looked {
  return share >= limit.value ? looked : { figure: looked.figure }
}

/** A device whose clock is held down, by what is named. */
export function capFinding(device: PowerDevice, capped: CappedFigures, by: string): Required<Looked> {
  const { share, time_ns, clock_hz: clock, free_clock_hz: free } = capped
  const best = free ?? device.max_clock_hz
  const slower = clock !== null && best !== null && best > clock ? 1 - clock / best : null
  const clocks = slower === null ? '' : `: ${MHz(clock!)} instead of ${MHz(best!)}`
  const figure = `${device.device} is held down by ${by} in ${percent(share)} of the time of calls${clocks}`
  const finding = {
    sentence: figure,
    // At most: what waits for memory does not need the clock.
    time_ns: Math.round(time_ns * (slower ?? 0)),
    confidence: 'medium' as const,
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
  }
  return { figure, finding }
}

const MHz = (Hz: number) => `${Math.round(Hz / 1e6)} MHz`

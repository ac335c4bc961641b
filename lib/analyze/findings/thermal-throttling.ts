import { lookAtCap } from './capped.ts'
import type { Limit, Rule } from './rule.ts'

const SHARE: Limit = {
  value: 0.02,
  why: 'a cooled machine never reaches its limit of temperature; one reading may be a moment of regulation',
}

/** A device lowers its clock because it is too hot. */
export const thermalThrottling: Rule = {
  id: 'thermal-throttling',
  title: 'A device lowers its clock because of its temperature',
  limits: { share: SHARE },
  advice:
    'Cooling does not suffice: fans, dust, air flow, the room, a passive card in a case without wind. A lower power limit loses less than ' +
    'regulation at the limit of temperature, which is uneven',
  look: (analysis) =>
    (analysis.power?.devices ?? []).flatMap((device) => {
      const { thermal_capped: capped, temperature_c: hottest } = device
      if (!capped) return []
      const by = hottest === null ? 'its temperature' : `its temperature (${Math.round(hottest.max)} °C)`
      return lookAtCap(analysis, device, capped, SHARE, by)
    }),
}

/** What a monitor of GPUs measures meanwhile. */
import { writeFileSync } from 'node:fs'
import { modelIn } from '../bench-folder.mjs'

const HEAD =
  'timestamp, index, name, power.draw [W], enforced.power.limit [W], clocks.current.sm [MHz], clocks.max.sm [MHz], utilization.gpu [%], ' +
  'memory.used [MiB], temperature.gpu, pstate, clocks_event_reasons.active'
const EVERY_MS = 100

/** As nvidia-smi writes a time, in UTC. */
const timeOf = (ms) => new Date(ms).toISOString().replaceAll('-', '/').replace('T', ' ').replace('Z', '')

/** Readings of a GPU from the start of the run to its end, of which two in three are held down. This machine has none: it is written. */
const heldDown = (id, title, rule, [power, temperature, reasons]) => ({
  id,
  title,
  builds: ['pool'],
  by: ['why'],
  isUndisturbed: true,
  rules: [rule],
  async create({ folder, build }) {
    const startMs = Date.now()
    const beside = (log) => {
      const path = log.replace(/ggtrace$/, 'nvidia-smi.csv')
      const rows = Array.from({ length: Math.ceil((Date.now() - startMs) / EVERY_MS) }, (_, i) => {
        const [watts, clock, degrees, reason] = i % 3 ? [power, 1350, temperature, reasons] : [120, 1980, 60, 0]
        const values = [`${watts} W`, '200.00 W', `${clock} MHz`, '2100 MHz', '97 %', '1129 MiB', degrees, 'P0']
        return [
          timeOf(startMs + i * EVERY_MS),
          0,
          'NVIDIA RTX A4500',
          ...values,
          `0x${reason.toString(16).padStart(16, '0')}`,
        ].join(', ')
      })
      writeFileSync(path, `${[HEAD, ...rows].join('\n')}\n`)
      return [path, '--clock', `${path}=UTC+0`]
    }
    return { command: build.decode({ model: await modelIn(folder, 'big'), threads: 2, tokens: 40 }), beside }
  },
})

export const powerCap = heldDown('power-cap', 'a GPU at its power limit', 'power-cap', ['199.50', 70, 0x4])
export const hotGpu = heldDown('hot-gpu', 'a GPU at its limit of temperature', 'thermal-throttling', [
  '150.00',
  88,
  0x20,
])

import { expect, test } from '@jest/globals'
import { eventsIn } from '../line/support.ts'

/** Logs of nvidia-smi with several headers. Others: power.test.ts. */

const LOG = `timestamp, power.draw [W], clocks.sm [MHz]
2025/04/24 15:58:57.879, 21.76 W, 300 MHz
2025/04/24 15:58:58.879, 22.00 W, 310 MHz
timestamp, power.draw [W]
2025/04/24 15:58:59.879, 23.00 W
`

test('rows before another header keep their columns, also those that wait for the number of GPUs', async () => {
  const { events, names } = await eventsIn(new TextEncoder().encode(LOG))
  const meters = new Map(events.flatMap((of) => (of.kind === 'meter' ? [[of.id, names.text(of.name)]] : [])))
  expect(events.flatMap((of) => (of.kind === 'reading' ? [[meters.get(of.meter), of.value]] : []))).toEqual([
    ['power.draw', 21.76],
    ['clocks.sm', 300e6],
    ['power.draw', 22],
    ['clocks.sm', 310e6],
    ['power.draw', 23],
  ])
})

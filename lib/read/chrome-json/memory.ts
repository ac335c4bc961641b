import type { TraceEvent } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'
import type { ArgReader } from './args.ts'

/** Counters of the memory that PyTorch's allocators hold: `[memory]` instants carry the totals after each change. */
export function memorySamples(names: Names, args: ArgReader, atNs: number): TraceEvent[] {
  const where = args.whole('Device Type', 0) === 0 ? 'CPU' : `GPU ${args.whole('Device Id', 0)}`
  return [
    ['Total Allocated', 'allocated'],
    ['Total Reserved', 'reserved'],
  ].flatMap(([key, word]): TraceEvent[] => {
    const value = args.whole(key!, -1)
    if (value < 0) return []
    return [{ kind: 'counter', name: names.id(`${where}: memory ${word}`), unit: 'bytes', atNs, value }]
  })
}

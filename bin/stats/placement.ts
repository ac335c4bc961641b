import {
  type Analysis,
  hasOtherBackend,
  layersOf,
  layersText,
  movedOps,
  opsText,
  type PhasePlacement,
  type PlacementFigures,
  rangesText,
  reasonText,
  weightsText,
} from '../../lib/cli.ts'
import { count, duration, size, threeDigits } from '../units.ts'
import { known, number, type Section, type StatsTable, some, tableOf, text } from './section.ts'

/** Rows of operators. */
const MOVED_MAX = 12

/** Where the model is, and where it is computed; undefined where only the CPU backend computes. */
export function placementSection({ placement }: Analysis): Section | undefined {
  if (!placement || !hasOtherBackend(placement)) return undefined
  const outside = placement.outside_layers.map(({ role, op, backend }) => `${role} ${op} ${backend}`)
  return {
    title: 'placement',
    facts: [
      ['layers', layersText(placement) || 'no weights of layers are read'],
      ...(placement.options.length > 0 ? [['options', placement.options.join(', ')] as const] : []),
      ['outside layers', [...new Set(outside)].join(', ') || 'nothing that reads weights'],
    ],
    tables: [layersTable(placement), phasesTable(placement), ...movedTable(placement)],
  }
}

/** The short form: one line. */
export function placementText(placement: PlacementFigures): string {
  const [most] = placement.phases.toSorted((a, b) => b.calls - a.calls)
  const perCall = most ? most.splits / most.calls : 0
  const splits = most ? [`${perCall === 1 ? '1 split' : `${threeDigits(perCall)} splits`} a ${most.phase} call`] : []
  const moved = placement.moved.filter(({ splits }) => splits > 0)
  const further = moved.map((row) => `${movedOps(row)} of ${count(row.layers.length)} on ${row.backend}`)
  const layers = layersText(placement)
  return [...(layers ? [`layers ${layers}`] : []), ...new Set(further), ...splits].join('; ')
}

function layersTable({ layers: rows }: PlacementFigures): StatsTable {
  return tableOf(rows, {}, [
    text('layers', (row) => rangesText(layersOf(row))),
    text('of', ({ backend }) => backend ?? 'not known'),
    text('weights in', weightsText),
    text('KV cache in', ({ kv_cache }) => kv_cache.join(', ')),
  ])
}

function phasesTable({ phases }: PlacementFigures): StatsTable {
  const perCall = (row: PhasePlacement, value: number) => value / row.calls
  return tableOf(phases, {}, [
    text('per call', ({ phase }) => phase),
    number('splits', (row) => threeDigits(perCall(row, row.splits))),
    text('on', (row) =>
      row.by_backend
        .map(({ backend, splits, nodes, time_ns, ...part }) => {
          const figures = [perCall(row, splits), perCall(row, nodes)].map(threeDigits)
          const ops = part.ops.length > 0 ? ` (${opsText(part)})` : ''
          return `${backend || 'CPU'} ${figures[0]} with ${figures[1]} nodes${ops}, ${duration(perCall(row, time_ns))}`
        })
        .join('; '),
    ),
    number('copied', (row) => some(perCall(row, row.copied_bytes), size)),
    number('copying', (row) => some(perCall(row, row.copying_ns))),
    number('waiting', (row) => known(row.waiting_ns, (ns) => some(perCall(row, ns)))),
  ])
}

function movedTable({ moved }: PlacementFigures): StatsTable[] {
  if (moved.length === 0) return []
  return [
    tableOf(moved, { max: MOVED_MAX }, [
      text('not on the backend of their layer', movedOps),
      text('phase', ({ phase }) => phase),
      text('on', ({ backend }) => backend),
      text('of', ({ layer_backend }) => layer_backend),
      text('layers', (row) => rangesText(row.layers)),
      number('splits a call', ({ splits, calls }) => some(splits / calls, threeDigits)),
      number('time a call', ({ time_ns, calls }) => some(time_ns / calls)),
      number('copied to them', ({ input_bytes, calls }) => some(input_bytes / calls, size)),
      text('why', reasonText),
    ]),
  ]
}

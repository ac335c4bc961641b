import { type Analysis, type WeightMemoryFigures, weightMemoryText } from '../../lib/cli.ts'
import { count, size } from '../units.ts'
import { number, type Section, type StatsTable, tableOf, text } from './section.ts'

/** Rows of weights, and roles of a row. */
const ROWS_MAX = 16
const ROLES_MAX = 3

/** Which weights of the CPU are repacked, and why others are not; undefined where that is not known. */
export function weightMemorySection({ weight_memory }: Analysis): Section | undefined {
  if (!weight_memory) return undefined
  return {
    title: 'memory of weights on the CPU',
    facts: [['repacking memory', weight_memory.repacking.join(', ') || 'the program asked for none']],
    tables: [rowsTable(weight_memory)],
  }
}

const rowsTable = ({ rows }: WeightMemoryFigures): StatsTable =>
  tableOf(rows, { max: ROWS_MAX }, [
    text('weights', ({ roles }) => (roles.length > ROLES_MAX ? [...roles.slice(0, ROLES_MAX), '…'] : roles).join(' ')),
    text('type', ({ type }) => type),
    number('tensors', ({ tensors }) => count(tensors)),
    number('size', ({ bytes }) => size(bytes)),
    text('in', ({ buffer }) => buffer || 'an unknown buffer'),
    text('why', weightMemoryText),
  ])

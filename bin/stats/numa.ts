import { type Analysis, bytesByNode, type NumaFigures, policyText, shareText } from '../../lib/cli.ts'
import { percent, size } from '../units.ts'
import { number, type Section, type StatsTable, tableOf, text } from './section.ts'

/** Rows of tensors. */
const TENSORS_MAX = 16

/** Where memory is, and who reads it; undefined on a machine with one node. */
export function numaSection({ numa }: Analysis): Section | undefined {
  if (!numa) return undefined
  return {
    title: 'NUMA',
    facts: [
      [
        'local reads',
        `${shareText(numa.local_share)} of ${size(numa.read_bytes)} that workers read in calls${estimate(numa.estimated_share)}`,
      ],
      ['policies', policyText(numa)],
    ],
    tables: [nodesTable(numa), buffersTable(numa), workersTable(numa), operatorsTable(numa), tensorsTable(numa)],
  }
}

const estimate = (share: number) => (share > 0 ? ` (${percent(share)} of them estimated)` : '')

const nodesTable = ({ nodes }: NumaFigures): StatsTable =>
  tableOf(nodes, {}, [
    number('node', ({ node }) => `${node}`),
    text('CPUs', ({ cpus }) => cpus || 'none'),
    number('tensors', ({ tensor_bytes }) => size(tensor_bytes)),
    number('other memory', ({ other_bytes }) => (other_bytes === null ? '' : size(other_bytes))),
    number('read there', ({ read_bytes }) => size(read_bytes)),
  ])

const buffersTable = (numa: NumaFigures): StatsTable =>
  tableOf(numa.buffers, {}, [
    text('buffer', ({ buffer }) => buffer),
    text('policy', ({ policy }) => policy),
    text('first', ({ first }) => (first ? bytesByNode(numa, first.by_node) : '')),
    text('last', ({ last }) => (last ? bytesByNode(numa, last.by_node) : '')),
    number('not present', ({ first, last }) => size((last ?? first)?.absent_bytes ?? 0)),
    number('asked for', ({ asked_share }) => percent(asked_share)),
  ])

const workersTable = (numa: NumaFigures): StatsTable =>
  tableOf(numa.workers, {}, [
    number('worker', ({ worker }) => `${worker}`),
    number('on node', ({ node }) => (node < 0 ? 'not known' : `${node}`)),
    number('read', ({ read_bytes }) => size(read_bytes)),
    number('local', ({ local_share }) => shareText(local_share)),
    text('from', ({ by_node }) => bytesByNode(numa, by_node)),
  ])

const operatorsTable = ({ operators }: NumaFigures): StatsTable =>
  tableOf(operators, {}, [
    text('operator', ({ role, op }) => `${role} ${op}`.trim()),
    number('read', ({ read_bytes }) => size(read_bytes)),
    number('local', ({ local_share }) => shareText(local_share)),
    number('estimated', ({ estimated_share }) => (estimated_share > 0 ? percent(estimated_share) : '')),
  ])

const tensorsTable = (numa: NumaFigures): StatsTable =>
  tableOf(numa.tensors, { max: TENSORS_MAX }, [
    text('tensor', ({ tensor }) => tensor),
    number('size', ({ size_bytes }) => size(size_bytes)),
    text('is on', ({ by_node }) => bytesByNode(numa, by_node)),
    number('local', ({ local_share }) => shareText(local_share)),
  ])

import { percent, size } from '../../model/units.ts'
import type { NumaFigures } from './figures.ts'

/** `80 %`, or that it is not known. */
export const shareText = (share: number | null) => (share === null ? 'not known' : percent(share))

/** `node 0 1.2 GB, node 1 400 MB` */
export const bytesByNode = ({ nodes }: Pick<NumaFigures, 'nodes'>, bytes: readonly number[]): string =>
  nodes.flatMap(({ node }, i) => (bytes[i] ? [`node ${node} ${size(bytes[i])}`] : [])).join(', ')

/** What is set: the mode of ggml, policies of threads, the balancing of the kernel. */
export function policyText({ mode, policies, balancing }: NumaFigures): string {
  const parts = [
    mode === null ? 'no --numa' : `--numa ${mode}`,
    policies.length > 0 ? `threads ${policies.join(', ')}` : 'threads with the default policy',
    ...(balancing === null ? [] : [`the kernel ${balancing ? 'moves' : 'does not move'} pages to who reads them`]),
  ]
  return parts.join('; ')
}

/** Workers on a node, the node where most of the bytes lie that they read elsewhere, and the part of them there. */
export interface RemoteReads {
  readonly node: number
  readonly from: number
  readonly share: number
  readonly bytes: number
}

/** Reads of the workers of a node from another one, most bytes first. */
export function remoteReads({ workers, nodes }: NumaFigures): RemoteReads[] {
  return nodes
    .flatMap(({ node }) => {
      const own = workers.filter((worker) => worker.node === node)
      const sums = nodes.map((_, i) => own.reduce((sum, { by_node }) => sum + by_node[i]!, 0))
      const all = sums.reduce((sum, bytes) => sum + bytes, 0)
      return nodes.flatMap((other, i): RemoteReads[] => {
        const bytes = sums[i]!
        return other.node === node || bytes === 0 ? [] : [{ node, from: other.node, share: bytes / all, bytes }]
      })
    })
    .sort((a, b) => b.bytes - a.bytes)
}

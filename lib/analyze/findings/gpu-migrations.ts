import { size } from '../../model/units.ts'
import { isMigration } from '../gpu/classes.ts'
import { confidenceIn, devicesOf, evidenceOf, nameOf, unionOf, workOf } from './gpu-device.ts'
import { found, type Limit, type Rule } from './rule.ts'
import { percent } from './words.ts'

const SHARE: Limit = {
  value: 0.1,
  why: 'pages move once at the start, in a few percent of the time; above it they are used on both sides, or do not fit into the memory of the GPU',
}

/** Pages of unified memory are moved. */
export const gpuMigrations: Rule = {
  id: 'gpu-migrations',
  title: 'Pages of unified memory are moved, and a GPU does nothing else meanwhile',
  limits: { share: SHARE },
  advice:
    'The driver moves a page when the side without it uses it: move them ahead (cudaMemPrefetchAsync), say who uses them (cudaMemAdvise: read ' +
    'mostly, preferred location, accessed by), or allocate on the GPU what only it uses (llama.cpp: without GGML_CUDA_ENABLE_UNIFIED_MEMORY). ' +
    'What does not fit into the memory of the GPU is moved again and again: fewer layers there, a smaller KV cache',
  look: (analysis) =>
    devicesOf(analysis)
      .filter(({ time }) => time.migration_ns > 0)
      .flatMap((device) => {
        const { total_ns, exposed_migration_ns: time_ns, migration_ns } = device.time
        const share = time_ns / total_ns
        const moved = device.transfers.filter(({ direction }) => isMigration(direction))
        const bytes = moved.reduce((sum, { bytes }) => sum + bytes, 0)
        const isKnown = moved.every(({ unknown_sizes }) => unknown_sizes === 0)
        const amount = isKnown ? `${size(bytes)} of unified memory` : 'unified memory'
        const sentence = `${nameOf(analysis, device)} moves ${amount} in ${percent(share)} of the time, and does nothing else meanwhile`
        const most = moved.toSorted((a, b) => b.time_ns - a.time_ns)[0]?.direction.slice(-4) ?? ''
        const to = { HtoD: 'to it', DtoH: 'to the host', DtoD: 'between GPUs' }[most]
        if (share < SHARE.value) return { figure: sentence }
        return found(sentence, {
          sentence: to === undefined ? sentence : `${sentence}: most of it ${to}`,
          time_ns,
          ...confidenceIn(analysis, device),
          evidence: {
            ...evidenceOf(device),
            ...{ exposed_share: share, exposed_migration_ns: time_ns, migration_ns, total_ns },
            ...(isKnown && { migrated_bytes: bytes }),
          },
          check: {
            sql: `with ${workOf(device)} select ${unionOf('0, 1, 2, 3')} - ${unionOf('0, 1, 2')}`,
            evidence: 'exposed_migration_ns',
          },
        })
      }),
}

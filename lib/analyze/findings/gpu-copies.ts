import { isMigration } from '../gpu/classes.ts'
import type { GpuDevice, GpuTime, GpuTransfer } from '../gpu/figures.ts'
import { confidenceIn, devicesOf, evidenceOf, nameOf, unionOf, workOf } from './gpu-device.ts'
import { found, type Limit, type Rule } from './rule.ts'
import { number, percent } from './words.ts'

const SHARE: Limit = {
  value: 0.1,
  why: 'inputs, results and fills take up to a few percent; above it weights, caches or activations are moved',
}

/** The copies that make up most of the exposed time, which those that kernels hide do not; undefined where none does. */
function mostExposed({ transfers, time }: GpuDevice): GpuTransfer | undefined {
  const copies = transfers.filter(({ direction }) => !isMigration(direction))
  const most = copies.toSorted((a, b) => exposedNs(b) - exposedNs(a))[0]
  return most && 2 * exposedNs(most) > ofCopies(time!).exposed ? most : undefined
}

/** A migration is no copy that a program made. */
const ofCopies = (time: GpuTime) => ({
  all: time.copy_ns - time.migration_ns,
  exposed: time.exposed_copy_ns - time.exposed_migration_ns,
})

const exposedNs = ({ exposed_ns }: GpuTransfer) => exposed_ns ?? 0
const nameOfTransfer = ({ direction }: GpuTransfer) => (direction === 'memset' ? 'fills' : direction)

/** A GPU copies while it does nothing else. */
export const gpuCopies: Rule = {
  id: 'gpu-copies',
  title: 'A GPU copies and does nothing else meanwhile',
  limits: { share: SHARE },
  advice:
    'Keep on the GPU what is copied again and again (weights that are offloaded, KV caches); copy from pinned memory on a stream of its own, so ' +
    'that computation overlaps it. PCIe 4.0 x16 copies some 25 GB/s, 5.0 some 50: slower copies in stats are of pageable memory, or many small ones',
  look: (analysis) =>
    devicesOf(analysis)
      .filter(({ time }) => time.copy_ns > time.migration_ns)
      .flatMap((device) => {
        const { total_ns } = device.time
        const { exposed: time_ns, all: copy_ns } = ofCopies(device.time)
        const share = time_ns / total_ns
        const sentence = `${nameOf(analysis, device)} copies ${percent(share)} of the time, and does nothing else meanwhile`
        if (share < SHARE.value) return { figure: sentence }
        const most = mostExposed(device)
        const rate = most?.gb_per_s == null ? '' : ` at ${number(most.gb_per_s)} GB/s`
        return found(sentence, {
          sentence: `${sentence}${most ? `: most of it ${nameOfTransfer(most)}${rate}` : ''}`,
          time_ns,
          ...confidenceIn(analysis, device),
          evidence: {
            ...evidenceOf(device),
            ...{ exposed_share: share, exposed_copy_ns: time_ns, copy_ns, total_ns },
            ...(most && {
              direction: most.direction,
              direction_exposed_ns: exposedNs(most),
              direction_bytes: most.bytes,
              direction_ns: most.time_ns,
            }),
          },
          check: {
            sql: `with ${workOf(device)} select ${unionOf('0, 1, 2')} - ${unionOf('0, 1')}`,
            evidence: 'exposed_copy_ns',
          },
        })
      }),
}

import { confidenceIn, devicesOf, evidenceOf, nameOf, unionOf, workOf } from './gpu-device.ts'
import { found, type Limit, type Rule } from './rule.ts'
import { percent } from './words.ts'

const SHARE: Limit = {
  value: 0.1,
  why: 'communication that computation overlaps costs nothing; the last collective of a step has nothing to overlap, a few percent',
}

/** A GPU communicates while it computes nothing. */
export const gpuCommunication: Rule = {
  id: 'gpu-communication',
  title: 'A GPU communicates and computes nothing meanwhile',
  limits: { share: SHARE },
  advice:
    'Collectives wait for the slowest GPU, too: compare the ranks. Overlap them with computation (buckets of DDP, prefetching of FSDP), send ' +
    'less (types, gradient accumulation), or use faster links; in inference, fewer GPUs for a model (tensor parallelism) communicate less',
  look: (analysis) =>
    devicesOf(analysis)
      .filter(({ time }) => time.communication_ns > 0)
      .flatMap((device) => {
        const { total_ns, exposed_communication_ns: time_ns, communication_ns } = device.time
        const share = time_ns / total_ns
        const sentence = `${nameOf(analysis, device)} communicates ${percent(share)} of the time, and computes nothing meanwhile`
        if (share < SHARE.value) return { figure: sentence }
        const most = device.kernels.find(({ is_communication }) => is_communication)
        return found(sentence, {
          time_ns,
          ...confidenceIn(analysis, device),
          evidence: {
            ...evidenceOf(device),
            ...{ exposed_share: share, exposed_communication_ns: time_ns, communication_ns, total_ns },
            ...(most && { kernel: most.name.replace(/\(.*/, '') }),
          },
          check: {
            sql: `with ${workOf(device)} select ${unionOf('0, 1')} - ${unionOf('0')}`,
            evidence: 'exposed_communication_ns',
          },
        })
      }),
}

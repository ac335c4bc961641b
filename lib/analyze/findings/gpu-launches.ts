import { plural } from '../../model/units.ts'
import type { GpuDevice, GpuHostTime } from '../gpu/figures.ts'
import { confidenceIn, devicesOf, evidenceOf, nameOf, workOf } from './gpu-device.ts'
import { found, type Limit, type Rule } from './rule.ts'
import { percent } from './words.ts'

const SHARE: Limit = {
  value: 0.2,
  why: 'programs that launch ahead of the GPU, in PyTorch without graphs too, wait for up to a tenth of the time, where steps begin',
}

/** For these, a GPU waits wherever its launches are: the placement of the model is the cause. */
const ELSEWHERE: readonly GpuHostTime['what'][] = ['graphs elsewhere', 'between graphs', 'another GPU']
const isElsewhere = ({ what }: GpuHostTime) => ELSEWHERE.includes(what)

/** Most of what a recorded program did in this time. */
function meanwhile(hostTimes: GpuDevice['host_wait'], allNs: number): string {
  const most = hostTimes?.find((time) => !isElsewhere(time))
  return most ? `; the program meanwhile: ${most.what} (${percent(most.time_ns / allNs)})` : ''
}

/** A GPU is idle as the host has not launched its next work, and neither another backend nor another GPU computes. */
export const gpuLaunches: Rule = {
  id: 'gpu-launches',
  title: 'A GPU waits for the host to launch its work',
  limits: { share: SHARE },
  advice: (program) =>
    `The CPU is the limit: fewer and larger kernels (${program.isOfGgml ? '' : 'torch.compile, '}CUDA graphs, larger batches), and fewer waits of the host for the GPU ` +
    `(${program.isOfGgml ? '' : '.item(), '}copies to the host, cudaStreamSynchronize) before it launches more. stats lists the operators that launch, and the calls; and, of a recording, what the program did meanwhile: ` +
    'pipelines are compiled once and kept in the cache of the driver, sampling and sorting of large vocabularies can be limited (--top-k)',
  look: (analysis) =>
    devicesOf(analysis).flatMap((device) => {
      const { idle, time, host_wait } = device
      if (!idle) return []
      const { time_ns: waitNs, count } = idle.host_wait
      const elsewhereNs = (host_wait ?? []).filter(isElsewhere).reduce((sum, { time_ns }) => sum + time_ns, 0)
      const time_ns = waitNs - elsewhereNs
      const share = time_ns / time.total_ns
      const sentence = `${nameOf(analysis, device)} waits for launches ${percent(share)} of the time`
      if (share < SHARE.value) return [{ figure: sentence }]
      const query =
        `with ${workOf(device)}, call as (select extract_arg(arg_set_id, 'debug.correlation') as launch, min(ts) as called ` +
        `from slice where category = 'api' group by 1), gap as (select *, max(until) over (order by ts, id rows between unbounded ` +
        `preceding and 1 preceding) as since from work) select sum(ts - since) from gap join call using (launch) ` +
        `where ts > since and called > since`
      // Correlation ids are of a process, and slices of calls in the trace are without one.
      const isOnly = analysis.gpu!.processes.length === 1
      return found(sentence, {
        sentence: `${sentence}: ${plural(count, 'gap')} with nothing launched${meanwhile(host_wait, time_ns)}`,
        time_ns,
        ...confidenceIn(analysis, device),
        evidence: {
          ...evidenceOf(device),
          ...{
            launches_share: share,
            host_wait_ns: waitNs,
            ...(elsewhereNs > 0 && { elsewhere_ns: elsewhereNs }),
            gaps: count,
            idle_ns: time.idle_ns,
            total_ns: time.total_ns,
          },
        },
        check: { evidence: 'host_wait_ns', ...(isOnly ? { sql: query } : { command: 'ggml2perfetto stats <logs>' }) },
      })
    }),
}

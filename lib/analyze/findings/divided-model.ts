import { isOnHost } from '../../model/backends.ts'
import { either } from './program.ts'
import { confidenceOf, found, type Limit, partsNs, phasesOf, type Rule } from './rule.ts'
import { percent } from './words.ts'

const SHARE: Limit = {
  value: 0.1,
  why: 'of a model that is wholly on a GPU, the CPU computes the embedding and the scheduler copies its inputs: less than a tenth',
}

/** Options that place experts. */
const EXPERTS = ['--cpu-moe', '-cmoe', '--n-cpu-moe', '-ncmoe', '--override-tensor', '-ot']

/** A model that is divided: the CPU waits for another backend, and that one for the CPU. */
export const dividedModel: Rule = {
  id: 'divided-model',
  title: 'CPU and another backend wait for each other',
  limits: { share: SHARE },
  covers: ['gpu-launches'],
  advice: (program) => {
    const experts = program.unless(EXPERTS, 'for MoE only the experts on the CPU (--cpu-moe)')
    return `Only one of them computes at a time. ${either('Offload more layers (-ngl)', experts)}; less of the model on the slower one is the only gain`
  },
  look: (analysis) =>
    phasesOf(analysis).flatMap((callTime) => {
      const { phase, calls, time_ns } = callTime
      const backendNs = partsNs(callTime, 'waiting for a backend', 'submitting to a backend')
      const cpuNs = partsNs(
        callTime,
        'attention',
        'FFN',
        'MoE',
        'norm',
        'embedding',
        'LM head',
        'copy',
        'other',
        'barrier wait',
        'barrier open',
        'CPU library',
      )
      const { backends } = analysis.run
      const named = backends.filter((name) => !isOnHost(name))
      // What waits takes no device, where all backends are known and none is one.
      if (backendNs === 0 || (named.length === 0 && backends.length > 0)) return []
      const others = named.join(', ') || 'another backend'
      const [waits, computes] = [backendNs / time_ns, cpuNs / time_ns]
      const sentence = `${percent(waits)} of ${phase} waits for ${others}, ${percent(computes)} computes on the CPU: one after the other`
      const less =
        waits < computes
          ? `${percent(waits)} of ${phase} waits for ${others}`
          : `${percent(computes)} of ${phase} computes on the CPU, beside ${others}`
      if (Math.min(waits, computes) < SHARE.value) return [{ figure: less }]
      return found(sentence, {
        time_ns: Math.min(backendNs, cpuNs),
        ...confidenceOf(analysis, calls),
        evidence: { phase, backends: others, backend_share: waits, cpu_share: computes },
        check: { command: 'ggml2perfetto stats <logs>', evidence: 'backend_share' },
      })
    }),
}

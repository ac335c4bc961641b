import type { Analysis } from '../analysis.ts'
import { layersByBackend, rangesText } from '../placement/words.ts'
import { confidenceIn, devicesOf, evidenceOf, nameOf } from './gpu-device.ts'
import { found, type Limit, type Rule } from './rule.ts'
import { percent } from './words.ts'

const SHARE: Limit = {
  value: 0.2,
  why: 'GPUs that each compute a part of every layer, or batches by turns as in a pipeline, wait less for each other',
}

/** Waits that are named. */
const WAITS = 4

/** GPUs that compute parts of a model one after the other: each waits while another one computes. */
export const gpuTurns: Rule = {
  id: 'gpu-turns',
  title: 'GPUs compute one after the other',
  limits: { share: SHARE },
  advice:
    'A model that is divided by layers uses one GPU at a time: a further GPU adds memory, not speed. Put the model on one GPU if it fits (--split-mode none), ' +
    'or divide each layer (--split-mode row or tensor); several sequences at once, and prompts of several batches, keep more GPUs busy',
  covers: ['gpu-launches'],
  look: (analysis) => {
    const waits = devicesOf(analysis)
      .flatMap((device) =>
        (device.host_wait ?? []).flatMap((wait) => (wait.what === 'another GPU' ? [{ device, wait }] : [])),
      )
      .map(({ device, wait }) => ({ device, wait, share: wait.time_ns / device.time.total_ns }))
      .toSorted((a, b) => b.share - a.share)
    const [most] = waits
    if (!most) return []
    const named = waits.slice(0, WAITS).map(({ device, wait, share }, i) => {
      const other = `GPU ${wait.device}`
      return `${nameOf(analysis, device)} ${i === 0 ? 'waits ' : ''}for ${other} ${percent(share)}${i === 0 ? ' of the time' : ''}`
    })
    const sentence = `${named.join(', ')}${placesText(analysis)}`
    const { device, wait, share } = most
    if (share < SHARE.value) return [{ figure: sentence }]
    return found(sentence, {
      time_ns: wait.time_ns,
      ...confidenceIn(analysis, device),
      evidence: {
        ...evidenceOf(device),
        ...{ other_device: wait.device!, other_share: share, other_ns: wait.time_ns, total_ns: device.time.total_ns },
      },
      check: { command: 'ggml2perfetto stats <logs>', evidence: 'other_ns' },
    })
  },
}

/** `: layers 0–3 are on CUDA0, 4–7 on CUDA1` */
function placesText({ placement }: Analysis): string {
  const places = placement ? [...layersByBackend(placement)] : []
  if (places.length < 2) return ''
  const texts = places.map(([backend, layers], i) => `${rangesText(layers)} ${i === 0 ? 'are ' : ''}on ${backend}`)
  return `: layers ${texts.join(', ')}`
}

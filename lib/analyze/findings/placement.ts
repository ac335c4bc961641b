import { isOnHost } from '../../model/backends.ts'
import { duration, plural, size, threeDigits } from '../../model/units.ts'
import type { Analysis, CallTime, MovedOperators, PhasePlacement, PlacementFigures } from '../analysis.ts'
import { askedLayers } from '../placement/options.ts'
import { layersByBackend, layersText, movedOps, rangesText, reasonText } from '../placement/words.ts'
import { CALLS } from '../run/losses.ts'
import { confidenceOf, found, type Limit, phasesOf, type Rule } from './rule.ts'

const ROOM: Limit = { value: 2, why: 'times the weights: their KV caches and what is computed need room, too' }
const ONE: Limit = { value: 1, why: 'a model that is wholly on one backend has none' }
const CHECK = 'ggml2perfetto stats <logs>'

/** Phases with their splits, the longest first. */
function placedPhases(analysis: Analysis) {
  const { placement } = analysis
  return phasesOf(analysis).flatMap((time) => {
    const row = placement?.phases.find(({ phase }) => phase === time.phase)
    return placement && row ? [{ placement, time, row }] : []
  })
}

/** Of a sample of calls, time is that of all calls. */
const scaled = (ns: number, row: { readonly calls: number }, time: CallTime) => (ns / row.calls) * time.calls

/** Splits with moved operators are on the CPU, and what they read is copied to them. */
export const movedOperators: Rule = {
  id: 'moved-operators',
  title: 'The CPU computes operators of layers that are on a device',
  limits: { splits: ONE },
  advice:
    'Choose what the device supports (types of the KV cache, flash attention, a later version), or place the weights on it; each split waits for the one before',
  covers: ['divided-model', 'gpu-launches'],
  look: (analysis) =>
    placedPhases(analysis).flatMap(({ placement, time, row }) => {
      const moved = placement.moved.filter(
        ({ phase, backend, splits }) => phase === row.phase && splits >= ONE.value && isOnHost(backend),
      )
      return moved.flatMap((operators) => {
        // A copy waits for the split that makes its data: with it, the time is the most that these operators can cost.
        const copyingNs = row.input_bytes > 0 ? (row.copying_ns * operators.input_bytes) / row.input_bytes : 0
        const ns = (operators.time_ns + copyingNs) / row.calls
        const [splits, all] = [operators.splits / row.calls, row.splits / row.calls]
        const cost = `${threeDigits(splits)} of ${threeDigits(all)} splits, ${copyingNs > 0 ? 'up to ' : ''}${duration(ns)} of ${duration(time.time_ns / time.calls)} a ${row.phase} call`
        const sentence = `${movedOps(operators)} of ${plural(operators.layers.length, 'layer')} ${movedOps(operators).includes(',') ? 'run' : 'runs'} on the CPU: ${cost}: ${reasonText(operators)}`
        return found(sentence, {
          time_ns: scaled(operators.time_ns + copyingNs, row, time),
          ...confidenceOf(analysis, time.calls, [...CALLS, 'placement']),
          evidence: { ...evidenceOf(operators, row), copying_ns_max: copyingNs / row.calls },
          check: { command: CHECK, evidence: 'splits' },
        })
      })
    }),
}

const evidenceOf = (operators: MovedOperators, row: PhasePlacement) => ({
  phase: row.phase,
  splits: operators.splits / row.calls,
  computing_ns: operators.time_ns / row.calls,
  copied_bytes: operators.input_bytes / row.calls,
  layers: rangesText(operators.layers),
  reason: operators.reason,
  example: operators.example,
})

const DEVICE = /^(GPU|integrated GPU)\b/

/** Names of devices that could compute, and of those that do. */
function devicesOf({ devices, backends }: PlacementFigures): string[] {
  const found = (devices ?? []).filter(({ description }) => DEVICE.test(description)).map(({ name }) => name)
  // A backend of another machine is named with its address, and its device without it.
  const used = backends.filter((name) => !isOnHost(name))
  return [...new Set([...used, ...found.filter((name) => !used.some((backend) => backend.startsWith(`${name}[`)))])]
}

/** Layers that remain on the CPU although there is a device. */
export const layersOnCpu: Rule = {
  id: 'layers-on-cpu',
  title: 'Layers are on the CPU although a device is there, or was asked for',
  limits: { layers: ONE, room: ROOM },
  advice:
    'Offload more layers (-ngl), as many as the memory of the device has room for; of MoE only the experts on the CPU (--n-cpu-moe). Without a device, see why its backend finds none (driver, build, visible devices)',
  covers: ['divided-model', 'gpu-launches'],
  look: (analysis) =>
    placedPhases(analysis).flatMap(({ placement, time, row }) => {
      const devices = devicesOf(placement)
      const byBackend = layersByBackend(placement)
      const onCpu = byBackend.get('CPU') ?? []
      const count = [...byBackend.values()].reduce((sum, layers) => sum + layers.length, 0)
      const asked = askedLayers(placement.options)
      if (count === 0 || (devices.length === 0 && !(placement.devices && asked))) return []
      const beside = devices.length > 0 ? `beside ${devices.join(', ')}` : 'without a device'
      const figure =
        onCpu.length > 0
          ? `${onCpu.length} of ${plural(count, 'layer')} on the CPU, ${beside}`
          : `no layer is on the CPU: ${layersText(placement)}`
      // A program that asks for no layer on a device has what it asked for.
      if (onCpu.length < ONE.value || asked === 0) return [{ figure }]
      const cpuNs = row.by_backend.reduce((sum, part) => sum + (isOnHost(part.backend) ? part.time_ns : 0), 0)
      const movedNs = placement.moved
        .filter(({ phase, backend }) => phase === row.phase && isOnHost(backend))
        .reduce((sum, moved) => sum + moved.time_ns, 0)
      const ns = Math.max(0, cpuNs - movedNs)
      const although = devices.length > 0 ? `although ${devices.join(', ')} was there` : 'as no device was found'
      const where =
        onCpu.length === count
          ? `the model is wholly on the CPU ${although}`
          : `${plural(onCpu.length, 'layer')} of ${count} (${rangesText(onCpu)}) are on the CPU ${although}`
      const cost = `${duration(ns / row.calls)} of ${duration(time.time_ns / time.calls)} a ${row.phase} call`
      return found(
        `${where}${askedText(placement, count)}${roomText(placement)}: ${cost}${belowThreshold(analysis, placement, row)}`,
        {
          time_ns: scaled(ns, row, time),
          ...confidenceOf(analysis, time.calls, [...CALLS, 'placement']),
          evidence: {
            phase: row.phase,
            layers: rangesText(onCpu),
            layers_on_cpu: onCpu.length,
            computing_ns: ns / row.calls,
            devices: devices.join(', '),
            ...roomOf(placement),
          },
          check: { command: CHECK, evidence: 'layers_on_cpu' },
        },
      )
    }),
}

/** How many layers the program asked for; with the output they are one more than those of the model. */
function askedText({ options }: PlacementFigures, count: number): string {
  const asked = askedLayers(options)
  if (asked === undefined) return ''
  const all = asked > count ? `all ${count + 1} with the output` : `${asked} of ${count + 1} with the output`
  return ` (the program asked for ${all} on a device)`
}

/** Bytes of the weights of layers on the CPU, and of the free memory of the device that had most; undefined where a log does not contain it. */
function roomOf({ devices, layers }: PlacementFigures) {
  const [most] = (devices ?? [])
    .filter(({ description, free_bytes }) => DEVICE.test(description) && free_bytes !== null)
    .toSorted((a, b) => b.free_bytes! - a.free_bytes!)
  const onCpu = layers.filter(({ backend }) => backend === 'CPU').flatMap(({ weights }) => weights)
  const used = layers.filter(({ backend }) => backend === most?.name).flatMap(({ weights }) => weights)
  const sum = (list: typeof onCpu) => list.reduce((total, { bytes }) => total + bytes, 0)
  return (
    most && { weights_bytes: sum(onCpu), free_bytes: Math.max(0, most.free_bytes! - sum(used)), free_device: most.name }
  )
}

/** Would the weights fit there? Its memory also holds their KV cache and what is computed: twice as much leaves room for it. */
function roomText(placement: PlacementFigures): string {
  const room = roomOf(placement)
  if (!room || room.free_bytes < ROOM.value * room.weights_bytes) return ''
  return `, though ${room.free_device} has ${size(room.free_bytes)} free, and their weights take ${size(room.weights_bytes)}`
}

/** Products with weights in memory of the host are computed by a device from some number of tokens on: it was asked. */
function belowThreshold({ calls }: Analysis, { refusals }: PlacementFigures, { phase }: PhasePlacement): string {
  const refusal = refusals.find(({ op, question }) => op === 'MUL_MAT' && question === 'offload-op')
  const figures = calls.by_phase[phase]
  if (phase !== 'prefill' || !refusal || !figures?.tokens || figures.calls === 0) return ''
  const tokens = figures.tokens / figures.calls
  if (tokens > refusal.columns_max) return ''
  return `; ${refusal.device} did not take products of ${threeDigits(refusal.columns_max)} tokens with weights of the host (offload_op)`
}

/** `-fa auto` tries whether the device takes the op, and builds graphs without it if not. */
export const flashAttentionOff: Rule = {
  id: 'flash-attention-off',
  title: 'Flash attention was switched off because a device does not support it',
  limits: { shapes: ONE },
  advice:
    'Choose a type of the KV cache, or a version, with which the device supports it; --flash-attn on makes the CPU compute it',
  look: (analysis) =>
    (analysis.placement?.refusals ?? []).flatMap(({ op, question, is_computed, device, example, shapes, decided }) => {
      if (op !== 'FLASH_ATTN_EXT' || question !== 'supports-op' || is_computed) return []
      const why =
        decided === null
          ? `${device} refused FLASH_ATTN_EXT (supports_op) for ${example}`
          : `${device} has no kernel for ${decided}: ${example}`
      return found(`flash attention was switched off: ${why}`, {
        time_ns: 0,
        confidence: 'medium',
        confidence_reason: 'inferred: it was refused when memory was reserved, and no recorded graph contains it',
        evidence: { device, shapes, example },
        check: { command: CHECK, evidence: 'shapes' },
      })
    }),
}

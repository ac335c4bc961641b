import type { Analysis, LoadFigures, LoadStage } from '../analysis.ts'
import { type Advice, adviceOf, either } from './program.ts'
import { type Confidence, found, type Limit, type Looked, type Rule } from './rule.ts'
import { percent, time } from './words.ts'

const TIME: Limit = { value: 2e9, why: 'ns of loading: a program that starts once may take so long' }
const RATE: Limit = {
  value: 5e8,
  why: 'bytes a second: an SSD reads more, and the page cache ten times as much; of stages whose reads were not counted',
}
const DISK: Limit = {
  value: 0.1e9,
  why: 'ns of waiting for a disk: from there on also a short time of loading is named, if it is a large part of it',
}
const SHARE: Limit = {
  value: 0.2,
  why: 'of the time of loading; and half of the stages that read, which then take at least twice as long as from the page cache',
}
const BYTES: Limit = { value: 16e6, why: 'bytes from a disk: less are the header, and the program itself' }

/** What a stage of loading does, and what to do about it. */
const CAUSES = {
  disk: {
    is: 'waiting for a disk',
    advice:
      'The file is not in the page cache: a faster disk than the one (or the network) that it is on, or read it once before (cat), with enough free ' +
      'memory for the page cache to keep it',
  },
  starved: {
    is: 'able to run, without a CPU',
    advice:
      'Other programs, or a limit of the container, have the CPUs: start when they are idle, or give the program CPUs of its own (taskset)',
  },
  computed: {
    is: 'computing: weights are copied and repacked',
    advice: (program) => {
      const repack = program.unless(['--no-repack', '-nr'], 'no repacking (--no-repack), which computes slower')
      return `Less to compute: ${either(repack, 'a file of types that are not repacked', 'a file that is mapped instead of copied')}`
    },
  },
  other: {
    is: 'waiting, but not for a disk of this machine',
    advice:
      'A network or a file system in user space, whose reads the kernel does not count, or a lock: perf trace shows the system calls',
  },
  unknown: {
    is: 'for a reason that was not recorded',
    advice: 'Record it again: the recorder counts reads from disks, and the time without a CPU',
  },
  reserve: {
    is: 'reserving memory',
    advice: 'Less context (-c), or fewer slots (-np)',
  },
} as const satisfies Record<string, { readonly is: string; readonly advice: Advice }>

type Cause = keyof typeof CAUSES

/** Loading the model is slow. */
export const slowLoad: Rule = {
  id: 'slow-load',
  title: 'Loading is slow',
  limits: { time: TIME, rate: RATE, disk: DISK, share: SHARE, bytes: BYTES },
  advice: (program) => {
    const adviceOn = (cause: Cause) => {
      const { advice }: { readonly advice: Advice } = CAUSES[cause]
      return typeof advice === 'string' ? advice : advice(program)
    }
    return `For a disk: ${adviceOn('disk')}. Without a CPU: ${adviceOn('starved')}. Computing: ${adviceOn('computed')}. Reserving: ${adviceOn('reserve')}`
  },
  look: (analysis) =>
    analysis.load && analysis.load.time_ns > 0 && analysis.load.stages.length > 0
      ? lookAt(analysis, analysis.load)
      : [],
}

/** The time of a stage by cause. */
function causesOf(loadStage: LoadStage): readonly (readonly [Cause, ns: number])[] {
  const { stage, time_ns, cpu_ns, runnable_ns, process_cpu_ns, disk_bytes } = loadStage
  if (stage === 'reserve') return [['reserve', time_ns]]
  if (cpu_ns === null || runnable_ns === null || process_cpu_ns === null) return [['unknown', time_ns]]
  const waitedNs = Math.max(time_ns - cpu_ns - runnable_ns, 0)
  // Other threads of the program compute meanwhile, and this one waits for them.
  const forThreadsNs = Math.min(Math.max(process_cpu_ns - cpu_ns, 0), waitedNs)
  const forDisk = disk_bytes !== null && disk_bytes > 0
  return [
    ['computed', cpu_ns + forThreadsNs],
    ['starved', runnable_ns],
    [forDisk ? 'disk' : 'other', waitedNs - forThreadsNs],
  ]
}

/** Is it the disk, clearly? */
function isFromDisk(load: LoadFigures, diskNs: number): boolean {
  const reading = load.stages.filter(({ disk_bytes }) => (disk_bytes ?? 0) > 0)
  const readingNs = reading.reduce((sum, { time_ns }) => sum + time_ns, 0)
  const bytes = reading.reduce((sum, { disk_bytes }) => sum + disk_bytes!, 0)
  const isLarge = bytes >= BYTES.value && diskNs >= DISK.value
  return isLarge && diskNs >= SHARE.value * load.time_ns && 2 * diskNs >= readingNs
}

function lookAt(analysis: Analysis, load: LoadFigures): Looked[] {
  const { time_ns, stages } = load
  const byCause = new Map<Cause, number>()
  for (const stage of stages)
    for (const [cause, ns] of causesOf(stage)) byCause.set(cause, (byCause.get(cause) ?? 0) + ns)
  const diskNs = byCause.get('disk') ?? 0
  const isDisk = isFromDisk(load, diskNs)
  const [most, mostNs] = [...byCause].reduce((a, b) => (b[1] > a[1] ? b : a))
  const [cause, causeNs] =
    isDisk && most !== 'disk' && time_ns < TIME.value ? (['disk', diskNs] as const) : [most, mostNs]
  const slowest = stages.toSorted((a, b) => ofCause(b, cause) - ofCause(a, cause)).at(0)!
  const bytes = stages.reduce((sum, { disk_bytes }) => sum + (disk_bytes ?? 0), 0)
  const rate = slowest.bytes_per_s === null ? '' : ` at ${Math.round(slowest.bytes_per_s / 1e6)} MB/s`
  const ofDisk = `, ${Math.round(bytes / 1e6)} MB read at ${Math.round((bytes * 1e3) / diskNs)} MB/s`
  const read = cause === 'disk' ? ofDisk : cause === 'unknown' ? rate : ''
  const sentence = `loading takes ${time(time_ns)}, ${percent(causeNs / time_ns)} of it ${CAUSES[cause].is} (most in ${slowest.stage}${read})`
  const isSlow = time_ns >= TIME.value && !(cause === 'unknown' && (slowest.bytes_per_s ?? 0) > RATE.value)
  if (!isSlow && !(cause === 'disk' && isDisk)) return [{ figure: `loading takes ${time(time_ns)}` }]
  return found(sentence, {
    advice: adviceOf(CAUSES[cause].advice, analysis),
    time_ns: causeNs,
    ...confidenceIn(cause),
    evidence: {
      ...{ cause, cause_ns: causeNs, stage: slowest.stage, stage_ns: slowest.time_ns, load_ns: time_ns },
      ...(slowest.bytes !== null && { stage_bytes: slowest.bytes }),
      ...(cause !== 'unknown' && { disk_bytes: bytes }),
    },
    check: { command: 'ggml2perfetto stats <logs>', evidence: 'stage_ns' },
  })
}

const ofCause = (stage: LoadStage, cause: Cause) => causesOf(stage).find(([key]) => key === cause)?.[1] ?? 0

function confidenceIn(cause: Cause): Confidence {
  if (cause === 'unknown' || cause === 'other')
    return { confidence: 'low', confidence_reason: 'the time is measured, its cause is not' }
  return { confidence: 'high', confidence_reason: 'the kernel counted reads and the times of the thread' }
}

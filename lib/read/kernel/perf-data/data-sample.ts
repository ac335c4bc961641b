import type { AccessSource, AccessWhat, DataLevel, TlbResult } from '../../../model/access-events.ts'
import { INT32_MAX } from '../../../model/limits.ts'
import { type PerfAttr, Sample } from './attr.ts'

/** What a processor recorded of an access, as perf encodes it: `union perf_mem_data_src` (include/uapi/linux/perf_event.h). */
export interface DataSource {
  readonly what: AccessWhat
  readonly level: DataLevel
  readonly tlb: TlbResult
}

/** Bits of `mem_op`. */
const Op = { load: 2, store: 4, prefetch: 8 } as const
/** `mem_lvl`, from bit 5 on: hit and miss, then the place. */
const LVL_MISS = 4
const LVL: readonly (readonly [bit: number, level: DataLevel])[] = [
  [0x8, 'L1'],
  [0x10, 'LFB'],
  [0x20, 'L2'],
  [0x40, 'L3'],
  [0x80, 'DRAM'],
  [0x100, 'remote DRAM'],
  [0x200, 'remote DRAM'],
  [0x400, 'remote cache'],
  [0x800, 'remote cache'],
  [0x1000, 'I/O'],
  [0x2000, 'uncached'],
]
/** `mem_lvl_num`, in 4 bits from bit 33 on; 15: not recorded. */
const LVL_NUM: Readonly<Record<number, DataLevel>> = {
  1: 'L1',
  2: 'L2',
  3: 'L3',
  4: 'L4',
  5: 'L2',
  6: 'L3',
  8: 'uncached',
  9: 'CXL',
  10: 'I/O',
  11: 'any cache',
  12: 'LFB',
  13: 'DRAM',
  14: 'PMEM',
}
const MISSED: Readonly<Partial<Record<DataLevel, DataLevel>>> = { L1: 'L1 miss', L2: 'L2 miss', L3: 'L3 miss' }
const REMOTE: Readonly<Partial<Record<DataLevel, DataLevel>>> = {
  DRAM: 'remote DRAM',
  L1: 'remote cache',
  L2: 'remote cache',
  L3: 'remote cache',
  'any cache': 'remote cache',
}

/** Decodes perf's data source; `high` and `low` are its halves. */
export function dataSource(high: number, low: number): DataSource {
  const op = low & 31
  const what = (op & Op.load) !== 0 ? 'load' : (op & Op.store) !== 0 ? 'store' : 'other'
  return { what, level: levelOf(high, low), tlb: tlbOf((low >>> 26) | ((high & 1) << 6)) }
}

function levelOf(high: number, low: number): DataLevel {
  const places = (low >>> 5) & 0x3fff
  const isMiss = (places & LVL_MISS) !== 0
  const number = (high >>> 1) & 15
  // "Remote" with one hop is another core of the same node (PERF_MEM_HOPS_0).
  const isRemote = ((high >>> 5) & 1) === 1 && ((high >>> 11) & 7) !== 1
  const level = LVL_NUM[number] ?? LVL.find(([bit]) => (places & bit) !== 0)?.[1] ?? ''
  if (level === '') return number !== 0 && number !== 15 ? 'other' : ''
  if (isRemote) return REMOTE[level] ?? level
  return isMiss ? (MISSED[level] ?? level) : level
}

/** Bits of `mem_dtlb`: not recorded, hit, miss, level 1, level 2, hardware walk, fault. */
function tlbOf(bits: number): TlbResult {
  if (bits === 0 || (bits & 1) !== 0) return ''
  if ((bits & 0x40) !== 0) return 'fault'
  if ((bits & 0x20) !== 0) return 'walk'
  if ((bits & 4) !== 0) return 'miss'
  // "L1 or L2 hit": some processors do not record which of both.
  if ((bits & 0x18) === 0x18) return 'hit'
  return (bits & 8) !== 0 ? 'L1' : (bits & 0x10) !== 0 ? 'L2' : 'hit'
}

const NOT_RECORDED: DataSource = { what: 'other', level: '', tlb: '' }

/** Finds weight and data source of samples, which come after a sample's branches, registers and stack. */
export class DataFields {
  /** Of the last sample; the same object for samples of one source. */
  source: DataSource = NOT_RECORDED
  /** Cycles; -1: not recorded. */
  latency = -1
  private readonly known = new Map<number, DataSource>()

  /** Reads them from `at`, the end of the tracepoint's record; false where the sample ends earlier. */
  read(view: DataView, attr: PerfAttr, from: number, end: number): boolean {
    const { sampleType: type, branches, userRegisters } = attr
    const has = (bit: number) => (type & bit) !== 0
    this.source = NOT_RECORDED
    this.latency = -1
    let at = from
    const count = () => (at + 8 <= end ? view.getUint32(at, true) + view.getUint32(at + 4, true) * 2 ** 32 : Infinity)
    if (has(Sample.branchStack)) at += 8 + (branches.hasIndex ? 8 : 0) + count() * branches.each
    if (has(Sample.userRegisters)) at += 8 + (count() === 0 ? 0 : 8 * userRegisters)
    if (has(Sample.userStack)) at += 8 + (count() === 0 ? 0 : count() + 8)
    if (has(Sample.weight) || has(Sample.weightStruct)) {
      if (at + 8 > end) return false
      // Of a struct, the first 32 bits are the latency.
      this.latency = Math.min(has(Sample.weight) ? count() : view.getUint32(at, true), INT32_MAX)
      at += 8
    }
    if (!has(Sample.dataSource)) return at <= end
    if (at + 8 > end) return false
    this.source = this.sourceOf(view.getUint32(at + 4, true), view.getUint32(at, true))
    return true
  }

  /** Samples have a few different sources. */
  private sourceOf(high: number, low: number): DataSource {
    const key = (high & 0xfffff) * 2 ** 32 + low
    let source = this.known.get(key)
    if (source) return source
    source = dataSource(high, low)
    if (this.known.size < SOURCES_MAX) this.known.set(key, source)
    return source
  }
}

/** Different sources that are kept; more are damage. */
const SOURCES_MAX = 4096

/** The kernel's half of addresses; addresses of user space with more bits than this are tagged (arm64). */
const [KERNEL_HIGH, TAG_SHIFT] = [0xffff0000, 24]

/** An address of data in the process, exact; -1: in the kernel, or none. Its tag is left away; `tagged` counts those. */
export function addressOf(high: number, low: number, onTag: () => void): number {
  if (high >= KERNEL_HIGH || (high === 0 && low === 0)) return -1
  if (high >>> TAG_SHIFT !== 0) onTag()
  const address = (high & 0xffffff) * 2 ** 32 + low
  return address <= Number.MAX_SAFE_INTEGER ? address : -1
}

/** What the processor recorded, where it recorded any of it. */
export function sourceOf({ level, tlb }: DataSource, latency: number): AccessSource | undefined {
  return level === '' && tlb === '' && latency < 0 ? undefined : { level, tlb, latency }
}

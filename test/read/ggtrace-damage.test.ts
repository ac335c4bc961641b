import { describe, expect, test } from '@jest/globals'
import { FORMATS, Names, type TraceEvent } from '../../lib/index.ts'
import { Header, NONE, RecordType } from '../../lib/log/ggtrace-layout.ts'
import { inLong, inParts, isLong, someOf } from '../long.ts'
import {
  altered,
  begun,
  blocksOf,
  everyRecord,
  fieldsOf,
  joined,
  killed,
  lossy,
  placed,
  read,
  tiny,
  viewOf,
} from './ggtrace-logs.ts'

const recordTypes = Object.values(RecordType).filter((type) => typeof type === 'number')

/** Logs that were lost in part, cut, changed, or never were sound. */

const EVENTS = 3
const isOwn = (error: unknown) => ['FormatError', 'UsageError'].includes((error as Error).name)

/** Every event or a refusal; any other error fails the test. */
async function attempt(bytes: Uint8Array): Promise<TraceEvent[] | undefined> {
  try {
    const { events } = await read(bytes)
    check(events)
    return events
  } catch (error) {
    if (!isOwn(error)) throw error
    return undefined
  }
}

/** Events refer to what was told, the input comes first, and times are such. */
function check(events: readonly TraceEvent[]): void {
  let tensors = 0
  events.forEach((event, i) => {
    if ((event.kind === 'input') !== (i === 0)) throw new Error(`event ${i} is of kind ${event.kind}`)
    if ('startNs' in event && !(event.endNs >= event.startNs)) throw new Error('an event ends before it starts')
    const times = 'startNs' in event ? [event.startNs, event.endNs] : 'atNs' in event ? [event.atNs] : []
    if (!times.every(Number.isSafeInteger)) throw new Error(`times ${times}`)
    if (event.kind === 'tensor') {
      if (event.id !== tensors++ || event.sources.some((source) => source >= event.id))
        throw new Error('a stray tensor')
    } else if (event.kind === 'operator') {
      if (event.tensor >= tensors || (event.fusedTo ?? 0) >= tensors) throw new Error('an operator without its tensor')
    }
  })
}

const eventBlocks = (log: Uint8Array, worker: number) =>
  blocksOf(log).filter((block) => fieldsOf(block).kind === EVENTS && fieldsOf(block).worker === worker)

const operatorsOf = async (log: Uint8Array) => (await read(log)).of('operator').length

/** One worker, 200 operators; 21 of them fit a block of 512 bytes. */
function long(): Uint8Array {
  const writer = begun({}, 512)
  writer.type(0, 'f32')
  const tensor = writer.tensor({ name: 'x-0' })
  const thread = writer.thread(9, 0)
  for (let n = 0; n < 200; n++) thread.operator({ tensor, startNs: 100 * n, endNs: 100 * n + 50 })
  writer.end(30_000)
  return writer.take()
}

const without = (log: Uint8Array, lost: readonly Uint8Array[]) =>
  joined(blocksOf(log).filter((block) => !lost.some((other) => Buffer.compare(block, other) === 0)))

describe('blocks that are', () => {
  test('lost', async () => {
    const log = long()
    const blocks = eventBlocks(log, 0)
    const { issues, of } = await read(without(log, blocks.slice(2, 4)))
    const writer = fieldsOf(blocks[0]!).writer
    expect(of('operator').length).toBe(200 - 42)
    expect(issues).toEqual([
      `lost blocks: expected block 2 of writer ${writer}, found block 4: 2 blocks of it are lost`,
      'missing records: expected 200 event records, found 158',
    ])
  })

  test('lost at the end of a writer, which END tells', async () => {
    const log = long()
    const { issues } = await read(without(log, eventBlocks(log, 0).slice(-1)))
    expect(issues).toEqual(['missing records: expected 200 event records, found 189'])
  })

  test('repeated', async () => {
    const log = long()
    const blocks = blocksOf(log)
    const { issues } = await read(joined([...blocks.slice(0, 5), ...blocks.slice(4)]))
    expect(issues).toEqual([
      expect.stringMatching(/^repeated block: found block \d after block \d of writer \d; left out$/),
    ])
    expect(await operatorsOf(joined([...blocks.slice(0, 5), ...blocks.slice(4)]))).toBe(200)
  })

  test('out of order', async () => {
    const blocks = blocksOf(long())
    const [a, b] = [blocks[4]!, blocks[5]!]
    const log = joined([...blocks.slice(0, 4), b, a, ...blocks.slice(6)])
    const { issues, of } = await read(log)
    expect(issues.map((issue) => issue.split(':')[0])).toEqual(['lost blocks', 'block out of order'])
    expect(of('operator').length).toBe(200)
  })

  test('damaged: told once, and the next one is found', async () => {
    const log = long()
    const [, , third] = eventBlocks(log, 0)
    const at = log.findIndex((_, i) => Buffer.compare(log.subarray(i, i + 48), third!.subarray(0, 48)) === 0)
    for (const byte of [at + 8, at + 12, at + 100, at + third!.length - 1]) {
      const damaged = log.slice()
      damaged[byte]! ^= 0x10
      const { issues, of } = await read(damaged)
      expect(issues[0]).toMatch(/^damaged block: expected checksum 0x/)
      expect(of('operator').length).toBe(200 - 21)
    }
  })

  test('of unknown kind', async () => {
    const blocks = blocksOf(long())
    const unknown = altered(blocks[4]!, (view) => {
      view.setUint16(Header.kind, 77, true)
      view.setUint16(Header.writer, 900, true)
      view.setUint32(Header.sequence, 0, true)
    })
    const { issues, of } = await read(joined([...blocks.slice(0, 4), unknown, ...blocks.slice(4)]))
    expect(issues).toEqual([])
    expect(of('operator').length).toBe(200)
  })

  test('apart, with zeros and damage between', async () => {
    const blocks = blocksOf(long())
    const zeros = new Uint8Array(4096)
    expect((await read(joined(blocks.flatMap((block) => [block, zeros])))).issues).toEqual([])
    const damage = new Uint8Array(40).fill(7)
    const { issues } = await read(joined([...blocks.slice(0, 3), zeros, damage, zeros, ...blocks.slice(3)]))
    expect(issues).toEqual(['damaged bytes: expected a block or zeros, found 4136 bytes of something else'])
  })
})

describe('definitions', () => {
  const parts = (log: Uint8Array) => {
    const blocks = blocksOf(log)
    const of = (kind: number) => blocks.filter((block) => fieldsOf(block).kind === kind)
    return { run: of(1).slice(0, 1), end: of(1).slice(1), definitions: of(2), events: of(EVENTS) }
  }

  test('may come after the events that need them, and change nothing', async () => {
    const log = everyRecord()
    const { run, end, definitions, events } = parts(log)
    const late = await read(joined([...run, ...events, ...definitions, ...end]))
    const inTime = await read(log)
    const told = ({ events: all }: typeof late) => all.filter(({ kind }) => !['issue', 'facts'].includes(kind))
    expect(told(late)).toEqual(told(inTime))
    expect(late.issues.sort()).toEqual(inTime.issues.sort())
  })

  test('that never come: events are read with what is known', async () => {
    const { run, end, events } = parts(everyRecord())
    const { issues, of, names } = await read(joined([...run, ...events, ...end]))
    expect(issues).toContainEqual(expect.stringMatching(/^lost definitions: expected \d+ definitions, found 0/))
    expect(of('operator').length).toBe(7)
    expect(of('tensor').map(({ name }) => names.text(name))).toContain('tensor 5')
    expect(
      issues.filter((issue) => issue.startsWith('id without a definition: expected a definition of tensor')).length,
    ).toBe(of('tensor').length)
  })

  test('that are lost: told, and nothing waits for them', async () => {
    const writer = begun({}, 512)
    writer.type(0, 'f32')
    const tensors = Array.from({ length: 30 }, (_, i) => writer.tensor({ name: `x-${i}` }))
    writer.thread(1, 0).operator({ tensor: tensors[0]!, startNs: 1, endNs: 2 })
    writer.end(10)
    const { run, end, definitions, events } = parts(writer.take())
    const { issues, of } = await read(
      joined([...run, ...definitions.slice(0, 2), ...definitions.slice(3), ...events, ...end]),
    )
    expect(issues).toContainEqual(expect.stringMatching(/^lost definitions: expected definition \d+, found \d+/))
    expect(of('operator').length).toBe(1)
  })

  inLong(test)('that never come do not make us hold everything', async () => {
    const writer = begun({}, 1 << 20)
    writer.type(0, 'f32')
    const tensor = writer.tensor({ name: 'x' })
    const ids = new Int32Array(16_000)
    const thread = writer.thread(1, 0)
    for (let n = 0; n < 16; n++) thread.experts({ atNs: n, tensor, call: 0, k: 8, ids })
    writer.seal()
    const { run, events } = parts(writer.take())
    const first = events[0]!
    let held = 0
    async function* endless() {
      yield joined(run)
      for (let n = 0; n < 200; n++) {
        held += first.length
        yield altered(first, (view) => view.setUint32(Header.sequence, n, true))
      }
    }
    let sinceFirst = 0
    let most = 0
    for await (const batch of FORMATS[0]!.read(endless(), { names: new Names() })) {
      if (sinceFirst === 0 && batch.some(({ kind }) => kind === 'experts')) sinceFirst = held
      most = Math.max(most, batch.length)
    }
    expect(sinceFirst).toBeGreaterThan(32 << 20)
    expect(sinceFirst).toBeLessThan(80 << 20)
    expect(sinceFirst).toBeLessThan(held)
    expect(most).toBeLessThan(20_000)
  })
})

describe('a killed run', () => {
  test('is read to the last whole record, and says so once', async () => {
    const { issues, of } = await read(killed())
    expect(of('operator').length).toBe(50)
    expect(of('token').length).toBe(5)
    expect(issues).toEqual([
      'run did not end: no END record: the process was killed, or the file was cut; 4 blocks were still open (the ' +
        'first at byte 1912) and are read unchecked',
    ])
  })

  test('may leave half a record behind, and a full block directly before the next', async () => {
    const log = killed()
    const view = viewOf(log)
    const open = log.findIndex(
      (_, i) =>
        i % 8 === 0 && log[i] === 0x47 && view.getUint32(i, true) === 0x30544747 && view.getUint32(i + 4, true) === 0,
    )
    let end = open + 48
    while (view.getUint32(end, true) !== 0) end += view.getUint16(end + 2, true)
    const before = (await read(log)).events.length
    log.fill(0xab, end + 4, end + 16)
    const half = await read(log)
    expect(half.events.length).toBe(before)
    expect(half.issues.length).toBe(1)
    const filled = joined([log.subarray(0, end), ...(end % 8 === 0 ? [] : [new Uint8Array(4)]), tiny()])
    expect((await read(filled)).of('operator').length).toBeGreaterThanOrEqual(0)
  })

  test('has open blocks whose definitions stand further on', async () => {
    const writer = begun({}, 1024)
    writer.type(0, 'f32')
    writer.seal()
    const sealed = writer.take()
    const tensor = writer.tensor({ name: 'late-0' })
    const thread = writer.thread(1, 0)
    thread.operator({ tensor, startNs: 1, endNs: 2 })
    const open = writer.takeKilled()
    const [definitions, events] = [open.subarray(0, 1024), open.subarray(1024)]
    const { of, names, issues } = await read(joined([sealed, events, definitions]))
    expect(issues.length).toBe(1)
    expect(names.text(of('tensor')[0]!.name)).toBe('late-0')
    expect(of('operator')).toMatchObject([{ tensor: 0, startNs: 1 }])
  })
})

describe('hostile logs', () => {
  /** Bytes of which each is tried; then one of `STEP`, which is prime to the sizes of all records. scripts/fuzz.mjs tries all. */
  const DENSE_BYTES = isLong ? 1500 : 60
  const STEP = 5

  const logs = isLong ? { tiny, killed, lossy, everyRecord } : { tiny }

  inParts(test).each(Object.entries(logs))('every prefix of %s', async (_, make) => {
    const log = make()
    let refusals = 0
    for (let length = 0; length <= log.length; length += length < DENSE_BYTES ? 1 : STEP) {
      if (!(await attempt(log.subarray(0, length)))) refusals++
    }
    expect(refusals).toBeGreaterThan(3)
    expect(refusals).toBeLessThan(60)
  })

  inParts(test).each(Object.entries(logs))('every byte of %s changed', async (_, make) => {
    const log = make()
    for (let at = 0; at < log.length; at += at < DENSE_BYTES ? 1 : STEP) {
      for (const bits of make === tiny ? [0xff, 1 << (at % 8)] : [0xff]) {
        const changed = log.slice()
        changed[at]! ^= bits
        const events = await attempt(changed)
        if (events && make === tiny && events.every(({ kind }) => kind !== 'issue')) {
          throw new Error(`byte ${at} xor ${bits}: unnoticed`)
        }
      }
    }
  })

  test.each([0, 1, 2, 3, 8, 40, 47, 49, 1 << 20, (1 << 20) + 8, 0xffffffff])('a block of size %i', async (size) => {
    const log = tiny()
    viewOf(log).setUint32(Header.size, size, true)
    const events = await attempt(log)
    expect(events?.some(({ kind }) => kind === 'issue')).toBe(true)
  })

  /** Sweeps a 32-bit word of every record of a type, in blocks that are sealed again. */
  async function sweep(type: number, field: number, values: readonly number[]) {
    const swept = (await sweepOf(everyRecord(), type, field, values)) + (await sweepOf(placed(), type, field, values))
    expect(swept).toBeGreaterThan(0)
  }

  async function sweepOf(log: Uint8Array, type: number, field: number, values: readonly number[]) {
    const blocks = blocksOf(log)
    let swept = 0
    for (const [i, block] of blocks.entries()) {
      const view = viewOf(block)
      for (
        let at = 48;
        at + 4 <= block.length && view.getUint16(at + 2, true) > 0;
        at += view.getUint16(at + 2, true)
      ) {
        if (view.getUint16(at, true) !== type) continue
        swept++
        for (const value of someOf(values, 6, swept)) {
          const changed = altered(block, (copy) => copy.setUint32(at + field, value, true))
          expect(await attempt(joined(blocks.with(i, changed)))).toBeDefined()
        }
      }
    }
    return swept
  }

  inParts(test)('records of any size', async () => {
    for (const type of recordTypes) {
      const sizes = [0, 1, 2, 3, 4, 8, 12, 65_532, 65_535].map((size) => (size << 16) | type)
      if (type !== RecordType.End)
        await sweep(
          type,
          0,
          sizes.map((word) => word >>> 0),
        )
    }
  })

  const HUGE = [0, 1, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xffffffff]

  inParts(test)('any count of sources, nodes, tokens, experts, letters', async () => {
    await sweep(RecordType.Tensor, 16, HUGE)
    await sweep(RecordType.Graph, 12, HUGE)
    await sweep(RecordType.Experts, 16, HUGE)
    await sweep(RecordType.Experts, 20, HUGE)
    await sweep(RecordType.Name, 8, HUGE)
    await sweep(RecordType.Fact, 4, HUGE)
  })

  inParts(test)('any word of any record', async () => {
    const sizes: Readonly<Record<number, number>> = { [RecordType.Tensor]: 120, [RecordType.Token]: 52 }
    for (const type of recordTypes) {
      for (let field = 4; field < (sizes[type] ?? 12); field += 4) await sweep(type, field, HUGE)
    }
  })

  test('a block of operators without a worker', async () => {
    const blocks = blocksOf(long())
    const strayed = blocks.map((block) => altered(block, (view) => view.setUint32(Header.worker, NONE, true)))
    const { of, issues } = await read(joined(strayed))
    expect(of('operator')).toEqual([])
    expect(new Set(issues.map((issue) => issue.split(':')[0]))).toEqual(new Set(['operator without a worker']))
  })

  test('a fact without a key', async () => {
    const writer = begun({ '': 'of nothing', host: 'a' })
    const { of, issues } = await read(writer.take())
    expect(of('input')[0]!.attributes).toEqual({ 'format.version': '0', host: 'a' })
    expect(issues).toContainEqual(expect.stringMatching(/expected a key in a FACT record, found none$/))
  })

  test('one without a block that can be read is refused', async () => {
    await expect(read(new Uint8Array(4096))).rejects.toThrow(
      'expected a block that can be read, found none in 4096 bytes',
    )
    const bad = blocksOf(long())[0]!.slice()
    bad[60]! ^= 1
    const many = joined(new Array(2000).fill(bad))
    await expect(read(many)).rejects.toThrow('found 1000 that cannot')
  })
})

import type { TensorEvent } from '../../lib/core.ts'
import { eventsOf, type LogInput, Names } from '../../lib/index.ts'

/** Page faults by tensor, by an independent join of what perf prints with the addresses in the log. */

interface Placed {
  readonly name: string
  readonly start: number
  readonly end: number
}

/** Weights and caches of the log: by address, and by offset in the model's file. */
async function placesIn(log: LogInput) {
  const names = new Names()
  const tensors: TensorEvent[] = []
  const usages = new Map<number, string>()
  let pid = -1
  for await (const batch of eventsOf(log, names)) {
    for (const event of batch) {
      if (event.kind === 'input') pid = Number(event.attributes['pid'])
      if (event.kind === 'buffer') usages.set(event.id, event.usage)
      if (event.kind === 'tensor' && event.op === 0 && event.viewOf === undefined) tensors.push(event)
    }
  }
  const of = (usage: string) => tensors.filter(({ buffer }) => usages.get(buffer) === usage)
  const place = (start: number, { name, sizeBytes }: TensorEvent) => ({
    name: names.text(name),
    start,
    end: start + sizeBytes,
  })
  const alone = [...of('weights'), ...of('kv-cache')]
  return {
    pid,
    memory: alone.map((tensor) => place(tensor.address, tensor)),
    file: of('weights').map((tensor) => place(tensor.offset!, tensor)),
  }
}

const MAPPING = /^.* PERF_RECORD_MMAP2 .*: \[0x([0-9a-f]+)\(0x([0-9a-f]+)\) @ (0x[0-9a-f]+|0) .*\]: \S+ (.*)$/
const FAULT = /^ *(\S+) +(\d+)\/\d+ .*page-faults: +([0-9a-f]+)/

/**
 * Faults by weight or cache, line by line of `perf script`, every place compared. `model`: the end of the path of the model's file.
 */
export async function expectedFaults(log: LogInput, script: string, model: string): Promise<Record<string, number>> {
  const { memory, file, pid } = await placesIn(log)
  const faults: Record<string, number> = {}
  let models: (Placed & { readonly fileOffset: number })[] = []
  const inside = (places: readonly Placed[], at: number) => places.filter(({ start, end }) => start <= at && at < end)
  for (const line of script.split('\n')) {
    const [, start, bytes, fileOffset, name] = MAPPING.exec(line) ?? []
    if (name !== undefined) {
      const from = Number.parseInt(start!, 16)
      const mapped = { name, start: from, end: from + Number.parseInt(bytes!, 16), fileOffset: Number(fileOffset) }
      models = [mapped, ...models]
    }
    const [, , ofPid, hex] = FAULT.exec(line) ?? []
    if (hex === undefined || Number(ofPid) !== pid) continue
    const address = Number.parseInt(hex, 16)
    const mapped = inside(models, address)[0] as (typeof models)[number] | undefined
    const inFile = mapped?.name.endsWith(model) ? inside(file, address - mapped.start + mapped.fileOffset) : []
    const [found] = [...inside(memory, address), ...inFile]
    if (found) faults[found.name] = (faults[found.name] ?? 0) + 1
  }
  return faults
}

import { BlockWriter, encodeText, type OpenBlock, textBytes } from './ggtrace-blocks.ts'
import { BlockKind, RecordType } from './ggtrace-layout.ts'

/** Recorders count their writers from 0. */
const APPENDED = 0xffff
const BLOCK_BYTES = 1 << 16

/** A run block with facts, to be appended to a finished log; at most 64 KiB of them. */
export function appendedFacts(facts: Readonly<Record<string, string>>): Uint8Array {
  let sealed: Uint8Array = new Uint8Array(0)
  const owner = { kind: BlockKind.Run, writer: APPENDED, tid: 0, worker: -1 }
  const blocks = new BlockWriter(owner, BLOCK_BYTES, 0n, (block: OpenBlock) => {
    sealed = block.sealed(0)
  })
  for (const [key, value] of Object.entries(facts)) {
    const [keyBytes, valueBytes] = [encodeText(key), encodeText(value)]
    const size = 4 + textBytes(keyBytes) + textBytes(valueBytes)
    if (blocks.reserve(size) && sealed.length > 0) break
    blocks.record(RecordType.Fact, size).text(keyBytes).text(valueBytes)
  }
  blocks.finish()
  return sealed
}

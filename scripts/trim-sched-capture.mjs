// Reduces a capture of the scheduler to what a fixture may contain: names of foreign processes are replaced, letter by letter, by x, and
// the kernel's symbols in a trace.dat of version 6 (5 MB) are removed. Everything else stays as it was recorded.
//
//   node scripts/trim-sched-capture.mjs <trace.dat or perf.data> <output> <names to keep, as a regular expression>
//
// The names are found in the capture itself: in its thread names and comm fields, as `perf script` or `trace-cmd report`
// prints them to the file <capture>.names, one a line.

import { readFileSync, writeFileSync } from 'node:fs'

const PAGE_BYTES = 4096
/** Short names are replaced in whole comm fields only, because other fields may contain the same bytes. */
const COMM_BYTES = 16
const [from, to, keep] = process.argv.slice(2)
if (keep === undefined) throw new Error('expected <capture> <output> <names to keep>')

const bytes = readFileSync(from)
hideNames(bytes, readFileSync(`${from}.names`, 'utf8').split('\n').filter(Boolean), new RegExp(`^(?:${keep})$`))
writeFileSync(to, bytes.subarray(0, 11).toString('latin1').endsWith('tracing6') ? withoutSymbols(bytes) : bytes)

/** Replaces every name that is not kept, if a zero or the end of a line follows it. */
function hideNames(all, names, kept) {
  for (const name of names.filter((text) => !kept.test(text)).sort((a, b) => b.length - a.length)) {
    const hidden = name.replace(/[A-Za-z0-9]/g, 'x')
    for (let at = all.indexOf(name); at >= 0; at = all.indexOf(name, at + 1)) {
      const behind = all.subarray(at + name.length, name.length < 3 ? at + COMM_BYTES : at + name.length + 1)
      if (behind.every((byte) => byte === 0) || all[at + name.length] === 0x0a) all.write(hidden, at, 'latin1')
    }
  }
}

/** A trace.dat of version 6 without kernel symbols; pages stay aligned. */
function withoutSymbols(all) {
  const symbolsAt = endOfFormats(all)
  const symbols = all.readUInt32LE(symbolsAt)
  const cut = symbols - (symbols % PAGE_BYTES)
  const cutAt = symbolsAt + 4
  const out = Buffer.concat([all.subarray(0, cutAt), all.subarray(cutAt + cut)])
  out.writeUInt32LE(symbols - cut, symbolsAt)
  out.fill('\n', cutAt, cutAt + symbols - cut)
  shiftTables(out, BigInt(cut))
  return out
}

/** The offset of the size of the kernel symbols. */
function endOfFormats(all) {
  let at = all.indexOf(0, 10) + 7
  const skipTexts = (count) => {
    for (let i = 0; i < count; i++) at += 8 + Number(all.readBigUInt64LE(at))
  }
  for (let i = 0; i < 2; i++) {
    at = all.indexOf(0, at) + 1
    skipTexts(1)
  }
  at += 4
  skipTexts(all.readUInt32LE(at - 4))
  const systems = all.readUInt32LE(at)
  at += 4
  for (let i = 0; i < systems; i++) {
    at = all.indexOf(0, at) + 5
    skipTexts(all.readUInt32LE(at - 4))
  }
  return at
}

/** Moves the offsets of pages, and of the tables of further buffers (option 3). */
function shiftTables(out, cut) {
  const shift = (at) => out.writeBigUInt64LE(out.readBigUInt64LE(at) - cut, at)
  const tag = out.indexOf('options  \0')
  const cpus = out.readUInt32LE(tag - 4)
  let at = tag + 10
  for (let id = out.readUInt16LE(at); id !== 0; id = out.readUInt16LE(at)) {
    if (id === 3) shift(at + 6)
    at += 6 + out.readUInt32LE(at + 2)
  }
  for (let table = out.indexOf('flyrecord\0'); table >= 0; table = out.indexOf('flyrecord\0', table + 10)) {
    for (let cpu = 0; cpu < cpus; cpu++) shift(table + 10 + 16 * cpu)
  }
}

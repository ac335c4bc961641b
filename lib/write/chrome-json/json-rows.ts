import type { Track } from '../../sink/track.ts'
import { Piece } from '../byte-writer.ts'

const encoder = new TextEncoder()

/** UTF-8. */
export const encode = (text: string): Uint8Array => encoder.encode(text)

/** The constant parts of a row's events. */
export interface Row {
  readonly begin: Piece
  readonly end: Piece
  readonly instant: Piece
  readonly flowStart: Piece
  readonly flowStep: Piece
  readonly counter: Piece
  readonly counterName: Piece
}

/** The parts of a row, which a unit belongs to if it is a counter. */
export function rowOf(pid: number, tid: number, name: string, unit: Track['unit'] = 'count'): Row {
  const piece = (text: string) => new Piece(encode(text))
  const start = (ph: string) => piece(`,\n{"ph":"${ph}","pid":${pid},"tid":${tid},"ts":`)
  return {
    begin: start('B'),
    end: start('E'),
    instant: piece(`,\n{"ph":"i","s":"t","pid":${pid},"tid":${tid},"ts":`),
    flowStart: start('s'),
    flowStep: start('t'),
    counter: piece(`,\n{"ph":"C","pid":${pid},"ts":`),
    counterName: piece(`,"name":${json(name)},"args":{"${unit}":`),
  }
}

/** JSON of definitions, which are few. */
export function json(value: unknown): string {
  return JSON.stringify(value, (_, part) =>
    typeof part === 'string' ? part.replace(/\p{Surrogate}/gu, '\ufffd') : part,
  )
}

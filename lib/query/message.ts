import { Reader } from 'protobufjs/minimal.js'

/** A message in protobuf: the values of its fields, by the fields' numbers. */
export class Message {
  readonly #values = new Map<number, (number | Uint8Array)[]>()

  /** Bytes of all of it. */
  readonly size: number

  /** Throws RangeError if `bytes` end within a field. */
  constructor(bytes: Uint8Array) {
    this.size = bytes.length
    const reader = Reader.create(bytes)
    while (reader.pos < reader.len) {
      const tag = reader.uint32()
      const [field, type] = [tag >>> 3, tag & 7]
      if (type === VARINT) this.#add(field, reader.uint32())
      else if (type === LENGTH_DELIMITED) this.#add(field, reader.bytes())
      else reader.skipType(type)
    }
  }

  /** The value of an integer field; 0 if there is none. As in protobuf, a value of another wire type is no value of the field. */
  number(field: number): number {
    return this.#values.get(field)?.findLast((value) => typeof value === 'number') ?? 0
  }

  /** The value of a field of bytes, a view; empty if there is none. */
  bytes(field: number): Uint8Array {
    return this.all(field).at(-1) ?? empty
  }

  /** The value of a text field; '' if there is none. */
  text(field: number): string {
    return utf8.decode(this.bytes(field))
  }

  /** The values of a repeated field of bytes, views. */
  all(field: number): Uint8Array[] {
    return this.#values.get(field)?.filter((value) => typeof value !== 'number') ?? []
  }

  /** The values of a repeated text field. */
  texts(field: number): string[] {
    return this.all(field).map((bytes) => utf8.decode(bytes))
  }

  /** The values of a repeated field of messages, or of a single one. */
  messages(field: number): Message[] {
    return this.all(field).map((bytes) => new Message(bytes))
  }

  #add(field: number, value: number | Uint8Array): void {
    const values = this.#values.get(field)
    if (values) values.push(value)
    else this.#values.set(field, [value])
  }
}

/** Wire types of protobuf. */
const [VARINT, LENGTH_DELIMITED] = [0, 2]

const empty = new Uint8Array(0)
// A byte order mark at the start of a text belongs to it.
const utf8 = new TextDecoder('utf-8', { ignoreBOM: true })

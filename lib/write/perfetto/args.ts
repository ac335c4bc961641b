import { DebugAnnotation, TrackEvent } from '../../generated/perfetto.ts'
import { type ArgFields, type Nested, nestedOf } from '../../model/args.ts'
import type { Names } from '../../model/names.ts'
import type { ArgSet } from '../../sink/label.ts'
import { Iids } from './iids.ts'
import { ProtoWriter } from './proto-writer.ts'

/** Encodes arguments of events. */
export class ArgEncoder {
  /** Interned ids of keys, and of texts. */
  readonly keys = new Iids()
  readonly texts = new Iids()
  private readonly scratch = new ProtoWriter()
  private readonly parsing = new ProtoWriter()
  /** By the id of a set. */
  private readonly sets: (Uint8Array | undefined)[] = []
  /** By the name that is the JSON of a value. */
  private readonly parsed: (Uint8Array | undefined)[] = []

  constructor(private readonly names: Names) {}

  /** The encoded arguments of a set. */
  ofSet(set: ArgSet): Uint8Array {
    let encoded = this.sets[set.id]
    if (!encoded) {
      for (const arg of set.args) this.write(this.scratch, arg)
      encoded = this.scratch.take()
      this.sets[set.id] = encoded
    }
    return encoded
  }

  /** Writes an argument into an event. An unknown value is none. */
  write(out: ProtoWriter, arg: ArgFields): void {
    const { int, name, double, text } = arg
    const json = typeof arg.json === 'number' ? this.ofJson(arg.json) : undefined
    if (json?.length === 0) return
    const annotation = out.begin(TrackEvent.debug_annotations)
    out.varint(DebugAnnotation.name_iid, this.keys.of(arg.key))
    if (int !== undefined) number(out, DebugAnnotation.int_value, int)
    else if (name !== undefined) out.varint(DebugAnnotation.string_value_iid, this.texts.of(name))
    else if (text !== undefined) out.string(DebugAnnotation.string_value, text)
    else if (double !== undefined) out.double(DebugAnnotation.double_value, double)
    else if (arg.pointer !== undefined) number(out, DebugAnnotation.pointer_value, arg.pointer)
    else if (arg.big !== undefined) out.bigVarint(DebugAnnotation.int_value, arg.big)
    else if (json) out.raw(json)
    else nested(out, arg.json as Nested)
    out.end(annotation)
  }

  /** The fields of a value that is known as JSON. */
  private ofJson(name: number): Uint8Array {
    let encoded = this.parsed[name]
    if (!encoded) {
      nested(this.parsing, nestedOf(this.names.text(name)))
      encoded = this.parsing.take()
      this.parsed[name] = encoded
    }
    return encoded
  }
}

/** Writes the value of an annotation. trace_processor has no empty objects and lists: they are texts. */
function nested(out: ProtoWriter, value: Nested): void {
  if (typeof value === 'string') out.string(DebugAnnotation.string_value, value)
  else if (typeof value === 'boolean') out.varint(DebugAnnotation.bool_value, value ? 1 : 0)
  else if (typeof value === 'number') number(out, DebugAnnotation.int_value, value)
  else if (typeof value === 'bigint') out.bigVarint(DebugAnnotation.int_value, value)
  else if (Array.isArray(value)) {
    if (value.length === 0) out.string(DebugAnnotation.string_value, '[]')
    for (const item of value as readonly Nested[]) entry(out, DebugAnnotation.array_values, item)
  } else if (value !== null && value !== undefined) {
    const entries = Object.entries(value)
    if (entries.length === 0) out.string(DebugAnnotation.string_value, '{}')
    for (const [key, item] of entries) entry(out, DebugAnnotation.dict_entries, item, key)
  }
}

function entry(out: ProtoWriter, field: number, value: Nested, key?: string): void {
  const annotation = out.begin(field)
  if (key !== undefined) out.string(DebugAnnotation.name, key)
  nested(out, value)
  out.end(annotation)
}

/** An integer; as a double if it is not a safe integer. */
function number(out: ProtoWriter, field: number, value: number): void {
  if (Number.isSafeInteger(value)) out.int64(field, value)
  else out.double(DebugAnnotation.double_value, value)
}

import { EventName, InternedData, TracePacket, TrackEvent, TrackEventType } from '../../generated/perfetto.ts'
import type { Arg, ArgFields } from '../../model/args.ts'
import { DefaultMap } from '../../model/default-map.ts'
import type { Names } from '../../model/names.ts'
import type { Label } from '../../sink/label.ts'
import { Piece } from '../byte-writer.ts'
import { ArgEncoder } from './args.ts'
import { Iids } from './iids.ts'
import { ScratchFields } from './packet-writer.ts'
import { ProtoWriter } from './proto-writer.ts'
import type { Sequence } from './sequence.ts'

const NONE: readonly Arg[] = []
/** Arguments of an event that has none. */
export const NO_ARGS = new Piece(new Uint8Array())

/** An integer from 0, as {@link ScratchFields} takes it. */
const isCount = (value: number) => Number.isSafeInteger(value) && value >= 0

/** Encodes names, categories, colours and arguments of events, and interns them in sequences. */
export class LabelEncoder {
  readonly args: ArgEncoder
  private readonly scratch = new ProtoWriter()
  private readonly scratchFields = new ScratchFields()
  /** By id of labels: their fields, and all fields of the event that begins a slice. */
  private readonly labelFields: (Uint8Array | undefined)[] = []
  private readonly beginFields: (Piece | undefined)[] = []
  private readonly nameIids = new Iids()
  private readonly categoryIids: DefaultMap<string, number> = new DefaultMap(() => this.categoryIids.size + 1)
  private readonly colourIids = new Iids()

  constructor(
    private readonly out: ProtoWriter,
    private readonly names: Names,
  ) {
    this.args = new ArgEncoder(names)
  }

  /** Writes the fields of a label. */
  write(out: ProtoWriter, label: Label): void {
    const { id } = label
    if (id === undefined) this.fields(out, label)
    else out.raw(this.labelFields[id] ?? this.prepared(id, label))
  }

  /** The encoded fields of an event that begins a slice with this label, which was written before. */
  beginOf(id: number): Piece {
    return this.beginFields[id]!
  }

  private prepared(id: number, label: Label): Uint8Array {
    const { scratch } = this
    this.fields(scratch, label)
    const fields = scratch.take()
    this.labelFields[id] = fields
    scratch.varint(TrackEvent.type, TrackEventType.TYPE_SLICE_BEGIN)
    scratch.raw(fields)
    this.beginFields[id] = new Piece(scratch.take())
    return fields
  }

  private fields(out: ProtoWriter, { name, category, args, colour }: Label): void {
    if (category !== '') out.varint(TrackEvent.category_iids, this.categoryIids.of(category))
    if (typeof name === 'number') out.varint(TrackEvent.name_iid, this.nameIids.of(name))
    else if (name !== '') out.string(TrackEvent.name, name)
    if (args) out.raw(this.args.ofSet(args))
    if (typeof colour === 'number') out.varint(TrackEvent.correlation_id_str_iid, this.colourIids.of(colour))
    else if (colour !== undefined) out.string(TrackEvent.correlation_id_str, colour)
  }

  /**
   * The fields of an event whose label has no id, with its arguments `extra`, until the next call; undefined if something in them is not
   * interned in the sequence yet, or rare, or if they are long.
   */
  brief(sequence: Sequence, type: number, label: Label, extra: Label['extra']): Piece | undefined {
    const { name, category, args, colour, launched } = label
    if (args || typeof colour === 'string') return undefined
    const nameIid = typeof name === 'number' ? this.nameIids.of(name) : 0
    const colourIid = colour === undefined ? 0 : this.colourIids.of(colour)
    const categoryIid = category === '' ? 0 : this.categoryIids.of(category)
    if (!areKnown(sequence, nameIid, colourIid, categoryIid)) return undefined
    const { scratchFields } = this
    scratchFields.clear()
    scratchFields.addField(TrackEvent.type, type)
    if (categoryIid !== 0) scratchFields.addField(TrackEvent.category_iids, categoryIid)
    if (typeof name === 'number') scratchFields.addField(TrackEvent.name_iid, nameIid)
    else if (name !== '' && !scratchFields.addString(TrackEvent.name, name)) return undefined
    if (colourIid !== 0) scratchFields.addField(TrackEvent.correlation_id_str_iid, colourIid)
    return this.addArgs(sequence, extra ?? NONE, launched) ? scratchFields.piece : undefined
  }

  /** The same of the arguments alone. */
  briefArgs(sequence: Sequence, extra: Label['extra'], launched: number | undefined): Piece | undefined {
    if (!extra && launched === undefined) return NO_ARGS
    const { scratchFields } = this
    if (extra?.length === 1 && launched === undefined) {
      // The fast path: operators that waited within.
      const { key, int }: ArgFields = extra[0]!
      const name = this.args.keys.of(key)
      if (int !== undefined && isCount(int))
        return sequence.argNames.has(name) ? scratchFields.singleInt(name, int) : undefined
    }
    scratchFields.clear()
    return this.addArgs(sequence, extra ?? NONE, launched) ? scratchFields.piece : undefined
  }

  private addArgs(sequence: Sequence, extra: readonly Arg[], launched: number | undefined): boolean {
    for (let i = 0; i < extra.length; i++) if (!this.addArg(sequence, extra[i]!)) return false
    return launched === undefined || this.scratchFields.addLaunch(launched)
  }

  private addArg(sequence: Sequence, arg: ArgFields): boolean {
    const { scratchFields, args } = this
    const key = args.keys.of(arg.key)
    if (!sequence.argNames.has(key)) return false
    const { int, name, double, pointer } = arg
    if (int !== undefined) return isCount(int) && scratchFields.addInt(key, int)
    if (name !== undefined) {
      const text = args.texts.of(name)
      return sequence.argTexts.has(text) && scratchFields.addText(key, text)
    }
    if (double !== undefined) return scratchFields.addDouble(key, double)
    return pointer !== undefined && isCount(pointer) && scratchFields.addPointer(key, pointer)
  }

  /** Writes what is not interned in this sequence yet, within the packet that first needs it. */
  intern(sequence: Sequence, { name, category, args, colour }: Label, extra: Label['extra']): void {
    const { out } = this
    const nameIid = typeof name === 'number' ? this.nameIids.of(name) : 0
    const colourIid = typeof colour === 'number' ? this.colourIids.of(colour) : 0
    const categoryIid = category === '' ? 0 : this.categoryIids.of(category)
    const knowsArgs = (!args || this.knows(sequence, args.args)) && (!extra || this.knows(sequence, extra))
    if (areKnown(sequence, nameIid, colourIid, categoryIid) && knowsArgs) return
    const interned = out.begin(TracePacket.interned_data)
    if (nameIid !== 0 && sequence.names.add(nameIid)) {
      this.entry(InternedData.event_names, nameIid, this.names.text(name as number))
    }
    if (categoryIid !== 0 && sequence.categories.add(categoryIid))
      this.entry(InternedData.event_categories, categoryIid, category)
    if (args) for (const arg of args.args) this.internArg(sequence, arg)
    if (extra) for (const arg of extra) this.internArg(sequence, arg)
    if (colourIid !== 0 && sequence.colours.add(colourIid)) {
      this.entry(InternedData.correlation_id_str, colourIid, this.names.text(colour as number))
    }
    out.end(interned)
  }

  /** Are all keys and texts of arguments interned? */
  knows(sequence: Sequence, extra: readonly ArgFields[]): boolean {
    for (const { key, name } of extra) {
      if (!sequence.argNames.has(this.args.keys.of(key))) return false
      if (name !== undefined && !sequence.argTexts.has(this.args.texts.of(name))) return false
    }
    return true
  }

  private internArg(sequence: Sequence, { key, name }: ArgFields): void {
    const keyIid = this.args.keys.of(key)
    if (sequence.argNames.add(keyIid)) this.entry(InternedData.debug_annotation_names, keyIid, this.names.text(key))
    if (name === undefined) return
    const text = this.args.texts.of(name)
    if (sequence.argTexts.add(text)) {
      this.entry(InternedData.debug_annotation_string_values, text, this.names.text(name))
    }
  }

  /** An interned text. All entry messages have the same two fields (EventName, EventCategory, InternedString, …). */
  private entry(field: number, iid: number, text: string): void {
    const { out } = this
    const entry = out.begin(field)
    out.varint(EventName.iid, iid)
    out.string(EventName.name, text)
    out.end(entry)
  }
}

/** Are these interned in the sequence? 0: none. */
function areKnown(sequence: Sequence, name: number, colour: number, category: number): boolean {
  const knowsName = name === 0 || sequence.names.has(name)
  return (
    knowsName && (colour === 0 || sequence.colours.has(colour)) && (category === 0 || sequence.categories.has(category))
  )
}

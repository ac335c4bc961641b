/** A field of a kernel's trace event. */
export interface Field {
  /** In bytes, from the start of the record. */
  readonly offset: number
  readonly size: number
  readonly isSigned: boolean
  /** `__data_loc`: the field holds where in the record a text lies (low 16 bits), and its size (high 16 bits). */
  readonly isText: boolean
}

/** A trace event as the recording kernel laid it out: ids, offsets and sizes differ from kernel to kernel. */
export interface EventFormat {
  readonly name: string
  /** What `common_type` of its records holds. */
  readonly id: number
  readonly fields: ReadonlyMap<string, Field>
  /** The kernel's own way of printing it: `"…", REC->…`. */
  readonly print: string
}

/**
 * Reads the text of an event's `format` file (tracefs `events/<system>/<event>/format`), as trace.dat and perf.data hold
 * it. Returns undefined for a text that names no event.
 */
export function parseEventFormat(text: string): EventFormat | undefined {
  const name = /^name: *(\S+)/m.exec(text)?.[1]
  const id = /^ID: *(\d{1,9})/m.exec(text)?.[1]
  const print = /^print fmt: *(.*)/ms.exec(text)?.[1] ?? ''
  return name === undefined || id === undefined ? undefined : { name, id: Number(id), fields: parseFields(text), print }
}

/** The fields that a `format` or `header_page` text lists. */
export function parseFields(text: string): ReadonlyMap<string, Field> {
  const fields = new Map<string, Field>()
  for (const line of text.split('\n')) {
    const parts = line.trim().split(';')
    const declared = parts[0]!
    if (!declared.startsWith('field:')) continue
    const name = /(\w+)(?:\[[^\]]*\])?$/.exec(declared)?.[1]
    const offset = numberIn(parts, 'offset:')
    const size = numberIn(parts, 'size:')
    if (name === undefined || offset === undefined || size === undefined) continue
    const isText = declared.includes('__data_loc ')
    fields.set(name, { offset, size, isSigned: numberIn(parts, 'signed:') === 1, isText })
  }
  return fields
}

function numberIn(parts: readonly string[], key: string): number | undefined {
  const part = parts.find((text) => text.trimStart().startsWith(key))
  const value = Number(part?.trimStart().slice(key.length))
  return Number.isInteger(value) && value >= 0 && value < 1 << 16 ? value : undefined
}

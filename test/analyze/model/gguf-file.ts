/** Writes the header of a GGUF file, of either byte order and any version, for tests of the reader. */

type Value =
  | number
  | string
  | boolean
  | { readonly type: number; readonly values: readonly (number | string | boolean)[] }

export interface GgufParts {
  readonly version?: number
  readonly bigEndian?: boolean
  readonly metadata?: Readonly<Record<string, Value>>
  /** Name, number of the type, elements per dimension, place. */
  readonly tensors?: readonly (readonly [string, number, readonly number[], number?])[]
}

export function ggufFile({ version = 3, bigEndian = false, metadata = {}, tensors = [] }: GgufParts): Uint8Array {
  const bytes: number[] = []
  const put = (size: number, set: (view: DataView, little: boolean) => void) => {
    const part = new Uint8Array(size)
    set(new DataView(part.buffer), !bigEndian)
    bytes.push(...part)
  }
  const u32 = (value: number) => put(4, (view, little) => view.setUint32(0, value, little))
  const u64 = (value: number) => put(8, (view, little) => view.setBigUint64(0, BigInt(value), little))
  const size = version === 1 ? u32 : u64
  const text = (value: string) => {
    const utf8 = new TextEncoder().encode(value)
    size(utf8.length)
    bytes.push(...utf8)
  }
  const scalar = (type: number, value: number | string | boolean) => {
    if (type === 8) text(String(value))
    else if (type === 7) bytes.push(value ? 1 : 0)
    else if (type === 6) put(4, (view, little) => view.setFloat32(0, Number(value), little))
    else u32(Number(value))
  }
  bytes.push(...new TextEncoder().encode('GGUF'))
  u32(version)
  size(tensors.length)
  size(Object.keys(metadata).length)
  for (const [key, value] of Object.entries(metadata)) {
    text(key)
    if (typeof value === 'object') {
      u32(9)
      u32(value.type)
      size(value.values.length)
      for (const element of value.values) scalar(value.type, element)
    } else {
      const type = typeof value === 'string' ? 8 : typeof value === 'boolean' ? 7 : 4
      u32(type)
      scalar(type, value)
    }
  }
  for (const [name, type, ne, offset = 0] of tensors) {
    text(name)
    u32(ne.length)
    for (const n of ne) u64(n)
    u32(type)
    u64(offset)
  }
  return new Uint8Array(bytes)
}

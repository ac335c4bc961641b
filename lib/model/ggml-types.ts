/** An element type of ggml: elements are stored in blocks. */
export interface GgmlType {
  /** In `enum ggml_type`. */
  readonly number: number
  readonly name: string
  /** Elements of a block, and its bytes. */
  readonly elements: number
  readonly bytes: number
}

/**
 * By ggml's number (`enum ggml_type`): name, elements and bytes of a block, as `ggml_type_name`, `ggml_blck_size` and `ggml_type_size` of
 * llama.cpp v0.5.0 return them. Numbers without a type were removed.
 */
const TABLE: readonly (readonly [number, string, number, number])[] = [
  [0, 'f32', 1, 4],
  [1, 'f16', 1, 2],
  [2, 'q4_0', 32, 18],
  [3, 'q4_1', 32, 20],
  [6, 'q5_0', 32, 22],
  [7, 'q5_1', 32, 24],
  [8, 'q8_0', 32, 34],
  [9, 'q8_1', 32, 36],
  [10, 'q2_K', 256, 84],
  [11, 'q3_K', 256, 110],
  [12, 'q4_K', 256, 144],
  [13, 'q5_K', 256, 176],
  [14, 'q6_K', 256, 210],
  [15, 'q8_K', 256, 292],
  [16, 'iq2_xxs', 256, 66],
  [17, 'iq2_xs', 256, 74],
  [18, 'iq3_xxs', 256, 98],
  [19, 'iq1_s', 256, 50],
  [20, 'iq4_nl', 32, 18],
  [21, 'iq3_s', 256, 110],
  [22, 'iq2_s', 256, 82],
  [23, 'iq4_xs', 256, 136],
  [24, 'i8', 1, 1],
  [25, 'i16', 1, 2],
  [26, 'i32', 1, 4],
  [27, 'i64', 1, 8],
  [28, 'f64', 1, 8],
  [29, 'iq1_m', 256, 56],
  [30, 'bf16', 1, 2],
  [34, 'tq1_0', 256, 54],
  [35, 'tq2_0', 256, 66],
  [39, 'mxfp4', 32, 17],
  [40, 'nvfp4', 64, 36],
  [41, 'q1_0', 128, 18],
  [42, 'q2_0', 64, 18],
]

const BY_NUMBER = new Map(TABLE.map(([number, name, elements, bytes]) => [number, { number, name, elements, bytes }]))
const BY_NAME = new Map([...BY_NUMBER.values()].map((type) => [type.name.toLowerCase(), type]))

/** The type with this number; undefined for one that is not known. */
export const typeNumbered = (number: number): GgmlType | undefined => BY_NUMBER.get(number)

/** The type with this name, in upper or lower case; undefined for one that is not known. */
export const typeNamed = (name: string): GgmlType | undefined => BY_NAME.get(name.toLowerCase())

/** Bytes of so many elements of a type; -1 for a type that is not known. */
export function bytesOfType(name: string, elements: number): number {
  const type = typeNamed(name)
  return type ? (elements / type.elements) * type.bytes : -1
}

/** Is it a quantised type? ggml's CPU backend multiplies these as 8-bit integers. */
export const isQuantised = (name: string): boolean => (typeNamed(name)?.elements ?? 1) > 1

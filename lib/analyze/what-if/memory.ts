import type { Analysis } from '../analysis.ts'
import { MAPPED_FILE } from '../placement/graph-parts.ts'

/** ggml's name of memory that contains weights as they are in the file. */
export const AS_IN_FILE = 'CPU'

/** What products read weights from: their pages, and the kernels that it has, make a factor of their time. */
export interface Memory {
  /** By ggml's name, or {@link MAPPED_FILE}; undefined: not known, or no weight of the run has the type. */
  readonly name: string | undefined
  /** Does the run map its file? Weights that are not repacked are in its pages then; undefined: not known. */
  readonly isMapped: boolean | undefined
}

/** The memory of weights of a type. Products of experts have their own: not all memory that repacks has kernels for them. */
export type MemoryOf = (type: string, areOfExperts: boolean) => Memory

/** Of a run: kernels of memory that repacks are others, with other times. A program that asked for none has all types as in the file. */
export function memoryOf({ weight_memory: found }: Pick<Analysis, 'weight_memory'>): MemoryOf {
  const all = found?.rows ?? []
  const read = all.filter(({ op }) => op.startsWith('MUL_MAT'))
  const isNoneAsked = read.length > 0 && read.every(({ reason }) => reason === 'not-asked')
  const isMapped = all.length > 0 ? all.some(({ buffer }) => buffer === MAPPED_FILE) : undefined
  const plain = isMapped ? MAPPED_FILE : AS_IN_FILE
  return (type, areOfExperts) => {
    const op = areOfExperts ? 'MUL_MAT_ID' : 'MUL_MAT'
    const row = read.find((row) => row.type === type && row.op === op)
    if (!row) return { name: isNoneAsked ? plain : undefined, isMapped }
    if (row.reason === 'unknown') return { name: undefined, isMapped }
    return { name: row.reason === 'repacked' ? row.buffer : plain, isMapped }
  }
}

/** Is measured memory this one, as far as it is known? */
export function isIn({ name, isMapped }: Memory, buffer: string): boolean {
  if (name !== undefined) return buffer === name
  return isMapped === undefined || buffer !== (isMapped ? AS_IN_FILE : MAPPED_FILE)
}

/** Does it contain weights as they are in the file? */
export const isAsInFile = (buffer: string): boolean => buffer === AS_IN_FILE || buffer === MAPPED_FILE

import type { Analysis } from '../analysis.ts'

/** ggml's name of memory that contains weights as they are in the file. */
export const AS_IN_FILE = 'CPU'

/**
 * The memory that products read weights of a type from, by ggml's name; undefined: not known, or no weight of the run has the type. Products of experts
 * have their own: not all memory that repacks has kernels for them.
 */
export type MemoryOf = (type: string, areOfExperts: boolean) => string | undefined

/** Of a run: kernels of memory that repacks are others, with other times. A program that asked for none has all types as in the file. */
export function memoryOf({ weight_memory: found }: Pick<Analysis, 'weight_memory'>): MemoryOf {
  const read = (found?.rows ?? []).filter(({ op }) => op.startsWith('MUL_MAT'))
  const isNoneAsked = read.length > 0 && read.every(({ reason }) => reason === 'not-asked')
  return (type, areOfExperts) => {
    const op = areOfExperts ? 'MUL_MAT_ID' : 'MUL_MAT'
    const row = read.find((row) => row.type === type && row.op === op)
    if (!row) return isNoneAsked ? AS_IN_FILE : undefined
    if (row.reason === 'unknown') return undefined
    return row.reason === 'repacked' ? row.buffer : AS_IN_FILE
  }
}

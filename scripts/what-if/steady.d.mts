/** Types of steady.mjs, which runs without a TypeScript step. */

export const LIMITS: Readonly<Record<'compute_ns' | 'memory_ns', number>>
export const EXCESS_MAX: number
export const ATTEMPTS: number
export const ALIKE: number

export function allowedCpus(status?: string): number[]

export class Steady {
  constructor(look: () => Readonly<Record<keyof typeof LIMITS, number>>, pauseMs?: number)
  begin(): void
  make<T>(attempt: (number: number) => Promise<T>): Promise<{ made: T; number: number; excess: number }>
}

export function areAlike(values: readonly number[]): boolean

export function leastAt(values: readonly number[]): number

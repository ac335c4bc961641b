/** Types of steady.mjs, which runs without a TypeScript step. */

export const EXCESS_MAX: number
export const ATTEMPTS: number
export const ALIKE: number

export function allowedCpus(status?: string): number[]

export class Steady {
  constructor(look: () => Readonly<Record<string, number>>, pauseMs?: number)
  begin(): void
  make<T>(attempt: (number: number) => Promise<T>): Promise<{ made: T; number: number; excess: number }>
}

export function areAlike(values: readonly number[]): boolean

export function leastAt(values: readonly number[]): number

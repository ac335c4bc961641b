import { dirname } from 'node:path'

/**
 * What sweeps over very many cases takes a part of them in `npm test`, which has each kind, and `npm run test:long` takes the others
 * (jest.long.config.mjs runs each test file that uses this one). There, what is declared by none of inLong and inParts is left out
 * (environment.cjs): `npm test` has it.
 */
const here = globalThis as { isLong?: boolean; isDeclaredLong?: boolean | undefined }

export const isLong = here.isLong === true

/** Every n-th case, of which the `from`-th is the first; in `npm run test:long` the others. */
export const someOf = <T>(cases: readonly T[], n: number, from = 0): readonly T[] =>
  cases.filter((_, i) => (i % n === from % n) !== isLong)

/** One file of each folder; in `npm run test:long` the others. Paths are in order. */
export const oneOfEach = (paths: readonly string[]): readonly string[] =>
  paths.filter((path, i) => (dirname(path) !== dirname(paths[i - 1] ?? '')) !== isLong)

// biome-ignore lint/suspicious/noExplicitAny: of tests and of groups of them, with tables of any type
type Declare = ((...args: any[]) => any) & { each: (...args: any[]) => any }

/** Declares tests that `npm run test:long` has. */
function declaredLong<D extends Declare>(declare: D): D {
  const declared = (...args: unknown[]) => {
    const outer = here.isDeclaredLong
    here.isDeclaredLong = true
    try {
      return declare(...args)
    } finally {
      here.isDeclaredLong = outer
    }
  }
  const each = (...table: unknown[]) => declaredLong(declare.each(...table))
  return Object.assign(declared, { each }) as unknown as D
}

/** A way to declare tests, or a group of them, some cases of which are in `npm test`, and others in `npm run test:long`. */
export const inParts = <D extends Declare>(declare: D): D => (isLong ? declaredLong(declare) : declare)

/** A way to declare tests, which `npm run test:long` has only: they take seconds, and others prove the main path of the same. */
export const inLong = <D extends Declare>(declare: D): D =>
  isLong ? declaredLong(declare) : (Object.assign(() => {}, { each: () => () => {} }) as unknown as D)

import { dirname } from 'node:path'

/**
 * What sweeps over very many cases takes a part of them in `npm test`, which has each kind, and all of them in `npm run test:long`
 * (jest.long.config.mjs runs each test file that uses this one).
 */
export const isLong = 'isLong' in globalThis

/** Every n-th case, of which the `from`-th is the first, or all. */
export const someOf = <T>(cases: readonly T[], n: number, from = 0): readonly T[] =>
  isLong ? cases : cases.filter((_, i) => i % n === from % n)

/** One file of each folder, or all. Paths are in order. */
export const oneOfEach = (paths: readonly string[]): readonly string[] =>
  isLong ? paths : paths.filter((path, i) => dirname(path) !== dirname(paths[i - 1] ?? ''))

/** A way to declare tests, which `npm run test:long` has only: they take seconds, and others prove the main path of the same. */
export const inLong = <Declare extends (...args: never[]) => unknown>(declare: Declare): Declare =>
  isLong ? declare : (Object.assign(() => {}, { each: () => () => {} }) as unknown as Declare)

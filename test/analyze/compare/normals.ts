import { randomOf } from '../../../lib/model/random.ts'

/** Independent normal values (Box & Muller), from a generator with a seed: the same in each run of the test. */
export function normals(seed: number): () => number {
  const uniform = randomOf(seed)
  return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform())
}

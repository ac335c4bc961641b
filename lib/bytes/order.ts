/**
 * Ids from 0 to below `length` in order: stable, in 4 bytes an id (8 while it sorts); undefined where they are in order already. Fast for
 * what consists of few runs in order.
 */
export function orderOf(length: number, compare: (a: number, b: number) => number): Uint32Array | undefined {
  const runs = runsOf(length, compare)
  return runs.length > 2 ? merged(length, runs, compare) : undefined
}

/** The ids at which runs in order begin, and the end. */
function runsOf(length: number, compare: (a: number, b: number) => number): number[] {
  const runs = [0]
  for (let id = 1; id < length; id++) if (compare(id - 1, id) > 0) runs.push(id)
  runs.push(length)
  return runs
}

/** Stable merge sort of runs: neighbouring runs become one until one is left. */
function merged(length: number, runs: number[], compare: (a: number, b: number) => number): Uint32Array {
  let from = Uint32Array.from({ length }, (_, id) => id)
  let to = new Uint32Array(length)
  while (runs.length > 2) {
    const next = [0]
    for (let run = 0; run + 1 < runs.length; run += 2) {
      const [start, middle, end] = [runs[run]!, runs[run + 1]!, runs[run + 2] ?? runs[run + 1]!]
      let [left, right] = [start, middle]
      for (let place = start; place < end; place++) {
        const takeLeft = left < middle && (right >= end || compare(from[left]!, from[right]!) <= 0)
        to[place] = from[takeLeft ? left++ : right++]!
      }
      next.push(end)
    }
    runs = next
    ;[from, to] = [to, from]
  }
  return from
}

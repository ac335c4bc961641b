import { attempt, importFaults, sameInPieces, spread } from '../line/hostile.ts'
import { randomOf } from '../line/support.ts'

/**
 * Tries a log cut at some places and with some bytes changed, in pieces too; each ends in a sound trace or in a message. Loads the last
 * trace. Returns how many of the damaged logs ended in a trace without any issue or lines left out.
 */
export async function tryDamaged(bytes: Uint8Array, name: string, places = 40): Promise<number> {
  const random = randomOf(bytes.length)
  const all = Array.from({ length: bytes.length }, (_, at) => at)
  let [unnoticed, tried] = [0, 0]
  let last: Uint8Array | undefined
  const one = async (damaged: Uint8Array, damage: string) => {
    const what = `${name}, ${damage}`
    const outcome = await attempt(damaged, what)
    if (++tried % 23 === 0) await sameInPieces(damaged, 1 + (tried % 700), outcome, what)
    if (!outcome.trace) return
    last = outcome.trace
    if (outcome.summary.issues.length + outcome.summary.leftOut.length === 0) unnoticed++
  }
  for (const at of spread(all, places)) {
    await one(bytes.subarray(0, at), `cut to ${at} bytes`)
    for (const bits of [0xff, 1 << Math.floor(random() * 8)]) {
      const damaged = bytes.slice()
      damaged[at]! ^= bits
      await one(damaged, `byte ${at} xor ${bits}`)
    }
  }
  if (!last) throw new Error(`${name}: no damaged log ended in a trace`)
  const faults = await importFaults(last, true)
  if (faults.length > 0) throw new Error(`${name}: ${faults.join('; ')}`)
  return unnoticed
}

/** Ids of arrows from calls to parts of requests: a separate range, and one range for each input. */
const IDS_START = 2 ** 47
const IDS_PER_INPUT = 2 ** 40
const SEQUENCES = 256

/** The id of the arrow from a call to the part of the request that uses a sequence; undefined where there are too many. */
export function requestArrow(input: number, call: number, sequence: number): number | undefined {
  if (call < 0 || sequence < 0 || sequence >= SEQUENCES) return undefined
  return IDS_START + (input % 128) * IDS_PER_INPUT + call * SEQUENCES + sequence
}

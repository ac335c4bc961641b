import { UsageError } from '../errors.ts'

/** Ids of own arrows: a separate range from those of logs, and one range for each of a few inputs. */
const IDS_START = 2 ** 49
const IDS_PER_INPUT = 2 ** 44
const INPUTS = 16
/** Those of messages: after the arrows of late waits (ggml/waits.ts). */
const MESSAGES_START = 2 ** 51
const ARROWS_PER_CONNECTION = 2 ** 33
const CONNECTIONS = 2 ** 17

/** Maps an input's ids of arrows to those of the trace. Throws UsageError for an id that is too large. */
export function arrowIds(input: number): (ids: readonly number[] | undefined) => readonly number[] | undefined {
  const start = IDS_START + (input % INPUTS) * IDS_PER_INPUT
  const idOf = (id: number) => {
    if (Number.isInteger(id) && id >= 0 && id < IDS_PER_INPUT) return start + id
    throw new UsageError(`own-slice: expected ids of arrows from 0 to below 2^44, found ${id}`)
  }
  return (ids) => ids?.map(idOf)
}

/** Ids of the arrows of a message of ggml-rpc: the same in the logs of both processes. `connection`: its number in the trace. */
export const messageArrows = (connection: number, message: number) => {
  const start = MESSAGES_START + (connection % CONNECTIONS) * ARROWS_PER_CONNECTION + 2 * message
  return { request: start, answer: start + 1 }
}

/** Ids of arrows to a submission of a graph: from its graph run, and, to the graph run of the first submission, from its call. */
export const submissionArrows = (input: number, correlation: number) => {
  const start = IDS_START + (input % INPUTS) * IDS_PER_INPUT + IDS_PER_INPUT / 2 + 2 * correlation
  return { fromGraph: start, fromCall: start + 1 }
}

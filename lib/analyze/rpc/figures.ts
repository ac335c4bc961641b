import type { Phase } from '../../model/events.ts'

/** Messages of ggml-rpc with other processes. */
export interface RpcFigures {
  /** In the order of their first messages. */
  readonly peers: readonly RpcPeer[]
  /** Messages of further processes and connections, for which there is no room. */
  readonly left_out: number
  /** Time of a client's messages within calls, by the phase of the call; null where there are too many to hold. */
  readonly in_calls: readonly { readonly phase: Phase; readonly time_ns: number }[] | null
}

/** Messages with another process, as the process of the log saw them. */
export interface RpcPeer {
  /** What the process of the log is: it asks, or it answers. */
  readonly side: 'client' | 'server'
  /** Address and port of the server, or the address of the client; empty: not known. */
  readonly other: string
  readonly connections: number
  readonly messages: number
  /** Messages before the last one of their connection that the log does not contain: their numbers are missing. */
  readonly missing: number
  /** Data of the requests, and of the answers. */
  readonly request_bytes: number
  readonly answer_bytes: number
  /**
   * Of a client, from the begin of each request to the end of its answer, or without one until it is sent; of a server, from the first byte of each
   * request until its answer is sent, or without one until it waits for the next one.
   */
  readonly time_ns: number
  /** Most time first. */
  readonly commands: readonly RpcCommandFigures[]
}

/** Messages with one command. */
export interface RpcCommandFigures {
  /** As ggml-rpc's protocol calls it: `GRAPH_COMPUTE`. */
  readonly command: string
  readonly messages: number
  readonly request_bytes: number
  readonly answer_bytes: number
  readonly time_ns: number
  readonly longest_ns: number
  /** Of `time_ns`, from the end of the request to the begin of the answer: a client waits, a server works. */
  readonly between_ns: number
}

import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Answer, Timings } from '../llama/client.ts'
import type { LoadKind, LoadRequest } from '../llama/load.ts'

/** What a client of a recorded server measured, stored beside the server's logs in test/fixtures/server/. */

export interface RecordedAnswer {
  readonly kind: LoadKind
  readonly promptTokens: number
  readonly status: number
  /** Of each document with the server's figures: one for each choice. Of a closed stream: its last. */
  readonly timings: readonly Timings[]
  /** The client closed the connection. */
  readonly isClosed: boolean
  /** Nanoseconds since the client sent the first request. */
  readonly sentNs: number
  readonly firstNs: number
  readonly lastNs: number
}

export const fixture = (name: string) => fileURLToPath(new URL(`../fixtures/server/${name}`, import.meta.url))

export const readAnswers = (name: string) =>
  JSON.parse(readFileSync(fixture(`${name}.answers.json`), 'utf8')) as readonly RecordedAnswer[]

/** What is compared of an answer. */
export function recordedOf(load: readonly LoadRequest[], answers: readonly Answer[]): RecordedAnswer[] {
  const origin = answers[0]!.sentNs
  return answers.map(({ documents, status, isClosed, ...times }, i) => {
    const { kind, promptTokens } = load[i]!
    const last = new Map(documents.map(({ index = 0, timings }) => [index, timings]))
    const timings = [...last.values()].flatMap((value) => value ?? [])
    const [sentNs, firstNs, lastNs] = [times.sentNs, times.firstNs || times.lastNs, times.lastNs].map((at) =>
      Number(at - origin),
    ) as [number, number, number]
    return { kind, promptTokens, status, timings, isClosed, sentNs, firstNs, lastNs }
  })
}

export const writeAnswers = (name: string, answers: readonly RecordedAnswer[]) =>
  writeFileSync(fixture(`${name}.answers.json`), `[\n${answers.map((one) => JSON.stringify(one)).join(',\n')}\n]\n`)

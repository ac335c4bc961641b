import type { IssueEvent } from '../../model/events.ts'
import { issueOf } from '../../model/issues.ts'

interface Span {
  readonly name: string
  readonly fromNs: number
  readonly toNs: number
}

/** Time spans of inputs, in the trace's time. */
export class InputSpans {
  private readonly spans: Span[] = []

  /** Adds an input. Returns an issue if it does not overlap with any before it. */
  add(span: Span): IssueEvent | undefined {
    const { spans } = this
    const isApart = spans.length > 0 && spans.every(({ fromNs, toNs }) => span.toNs < fromNs || toNs < span.fromNs)
    spans.push(span)
    if (!isApart) return undefined
    const { name, fromNs, toNs } = spans[0]!
    const found =
      span.toNs < fromNs
        ? `ends ${seconds(fromNs - span.toNs)} before it`
        : `begins ${seconds(span.fromNs - toNs)} after it`
    return issueOf('inputs-apart', `expected times of ${name}; this input ${found}`, { byte: 0 }, span.fromNs)
  }
}

const seconds = (ns: number) => `${(ns / 1e9).toPrecision(3)} s`

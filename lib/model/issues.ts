import type { Position } from '../errors.ts'
import type { IssueKind, LostKind } from './issue-kind.ts'
import { OF_FORMATS } from './issues-of-formats.ts'
import { OF_INPUTS } from './issues-of-inputs.ts'

export type { IssueKind, LostKind } from './issue-kind.ts'

/**
 * The catalogue of the problems that do not stop the reading of an input. Codes are stable and never reused: scripts may
 * test for them.
 */
export const ISSUES = { ...OF_INPUTS, ...OF_FORMATS } as const satisfies Readonly<Record<string, IssueKind>>

/** A code of {@link ISSUES}. */
export type IssueCode = keyof typeof ISSUES

/** The kind of an issue; undefined for one that is not in the catalogue. */
export function kindOfIssue({ code }: { readonly code?: string | undefined }): IssueKind | undefined {
  return code !== undefined && Object.hasOwn(ISSUES, code) ? ISSUES[code as IssueCode] : undefined
}

/** A problem of the input that did not stop the reading. Shown in the trace where it happened. */
export interface IssueEvent {
  readonly kind: 'issue'
  /** Its code in the catalogue (issues.ts), if it has one. */
  readonly code?: IssueCode | undefined
  /** A fixed phrase, by which issues are counted. */
  readonly title: string
  /** What was expected and what was found. */
  readonly detail: string
  readonly at: Position
  readonly atNs: number
  /** What is missing, where the reader knows it better than the catalogue does. */
  readonly lost?: readonly LostKind[] | undefined
}

/**
 * An issue of the catalogue. `detail`: what was expected and what was found; `atNs`: since the input's origin; `lost`: what is missing,
 * where the catalogue does not say it.
 */
export function issueOf(
  code: IssueCode,
  detail: string,
  at: Position,
  atNs: number,
  lost?: readonly LostKind[],
): IssueEvent {
  return { kind: 'issue', code, title: ISSUES[code].title, detail, at, atNs, ...(lost && { lost }) }
}

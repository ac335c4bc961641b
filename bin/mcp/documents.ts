import type { Analysis, ScalingFigures, SeriesName } from '../../lib/cli.ts'
import { type Call, placesOf, runOn, type Session } from './tool.ts'

/** What `stats --json` prints: of one run, or of runs with several numbers of threads. */
export type Document = Analysis | ScalingFigures

/** Characters of JSON that are kept, and Analyses. */
const [KEPT_CHARACTERS, KEPT_MAX] = [64 << 20, 4]

/** Analyses of files as they are, by their stamps: the calls of an agent are about the same logs. */
const kept = new Map<string, string>()

/** The Analysis of logs. Throws UsageError with the error of the command. */
export async function documentOf(
  logs: readonly string[],
  session: Session,
  call: Call,
  series: readonly SeriesName[] = [],
): Promise<Document> {
  const places = await placesOf(logs, session)
  const key = JSON.stringify([places.map(({ path, stamp }) => [path, stamp]), series])
  const text = kept.get(key) ?? (await read())
  kept.delete(key)
  kept.set(key, text)
  while (kept.size > KEPT_MAX || sum() > KEPT_CHARACTERS) kept.delete(kept.keys().next().value!)
  return JSON.parse(text)

  async function read(): Promise<string> {
    const args = [
      ...places.map(({ path }) => path),
      '--json',
      ...(series.length > 0 ? ['--series', series.join()] : []),
    ]
    return (await runOn(places, ['stats', ...args], session, call)).stdout
  }
}

const sum = () => [...kept.values()].reduce((characters, text) => characters + text.length, 0)

/** Is it of one run? */
export const isAnalysis = (document: Document): document is Analysis => 'verdict' in document

/** The sentence that it is judged by. */
export function verdictOf(document: Document): string {
  if (isAnalysis(document)) return document.verdict.sentence
  return document.findings[0]?.sentence ?? 'no findings: more threads pay, or that is not known'
}

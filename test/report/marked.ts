import { readAnalysis } from '../../lib/analysis.ts'

/** Changes values in an Analysis as JSON. */

export type Step = string | number
type Json = Record<Step, unknown>

export const valueAt = (document: unknown, steps: readonly Step[]) =>
  steps.reduce((value, step) => (value as Json)[step], document)

/** The document with another value while `use` runs. */
export async function changed<T>(
  document: unknown,
  steps: readonly Step[],
  value: unknown,
  use: () => Promise<T>,
): Promise<T> {
  const parent = valueAt(document, steps.slice(0, -1)) as Json
  const key = steps.at(-1)!
  const before = parent[key]
  parent[key] = value
  try {
    return await use()
  } finally {
    parent[key] = before
  }
}

/** Why a document is not read; undefined if it is. */
export const refusal = (document: unknown) =>
  readAnalysis(JSON.stringify(document)).then(
    () => undefined,
    (error: Error) => `${error.name}: ${error.message}`,
  )

/** Puts a mark behind all texts of a document, apart from words of which only some are valid; returns how many. */
export async function markTexts(document: unknown, mark: string): Promise<number> {
  const isWord = new Map<string, boolean>()
  let texts = 0
  const markIn = async (value: unknown, steps: Step[]): Promise<void> => {
    if (typeof value !== 'object' || value === null) return
    for (const [step, of] of Object.entries(value)) {
      const inner = [...steps, step]
      if (typeof of !== 'string') await markIn(of, inner)
      else {
        const key = inner.map((step) => (/^\d+$/.test(String(step)) ? '*' : step)).join('.')
        if (!isWord.has(key))
          isWord.set(key, (await changed(document, inner, mark, () => refusal(document))) !== undefined)
        if (isWord.get(key)) continue
        ;(value as Json)[step] = `${of}${mark}`
        texts++
      }
    }
  }
  await markIn(document, [])
  return texts
}

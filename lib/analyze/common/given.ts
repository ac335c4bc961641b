import { UsageError } from '../../errors.ts'

/** Throws UsageError for what a program gives in place of a document of one of these schemas. */
export function checkGiven(name: string, given: unknown, schemas: readonly string[], hint: string): void {
  const found = (given as { readonly schema?: unknown } | null | undefined)?.schema
  if (schemas.includes(found as string)) return
  const inWords =
    found === undefined ? `${given === null ? 'null' : typeof given} without a schema` : JSON.stringify(found)
  throw new UsageError(
    `${name}: expected an object with the schema ${schemas.join(' or ')}, found ${inWords}\nhint: ${hint}`,
  )
}

/** How a program gets an Analysis. */
export const ANALYSIS_HINT = 'analyze(log) returns one, readAnalysis(text) a stored one'

import type { Cell } from './cells.ts'
import { SqlError } from './errors.ts'

/** Values for the parameters of a statement: for each `?` in their order, or for `:name`, `@name`, `$name` by their names. */
export type Parameters = readonly (Cell | boolean)[] | Readonly<Record<string, Cell | boolean>>

/** Texts, quoted names and comments, in which nothing is a parameter; and parameters. PerfettoSQL's macros end in `!`, their arguments begin with `$`. */
const TOKENS =
  /'(?:[^']|'')*'?|"(?:[^"]|"")*"?|`[^`]*`?|\[[^\]]*\]?|--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|\?|[:@$][A-Za-z_]\w*|[\w:]+/g

/**
 * SQL with values in place of its parameters: trace_processor's interface has none.
 * @throws SqlError where a value or a parameter is missing
 */
export function withParameters(sql: string, values: Parameters): string {
  const isList = Array.isArray(values)
  const used = new Set<string>()
  let next = 0
  const replaced = sql.replace(TOKENS, (token) => {
    if (!/^(?:\?|[:@$][A-Za-z_]\w*)$/.test(token)) return token
    if ((token === '?') !== isList) return token
    const key = isList ? String(next++) : token.slice(1)
    if (!Object.hasOwn(values, key)) throw new SqlError(`no value for the parameter ${isList ? next : token}`)
    used.add(key)
    return literalOf((values as Readonly<Record<string, Cell | boolean>>)[key]!, token)
  })
  const unused = Object.keys(values).find((key) => !used.has(key))
  if (unused !== undefined)
    throw new SqlError(isList ? `${values.length} values for ${next} parameters` : `no parameter is named ${unused}`)
  return replaced
}

function literalOf(value: Cell | boolean, parameter: string): string {
  switch (typeof value) {
    case 'boolean':
      return value ? '1' : '0'
    case 'bigint':
      return String(value)
    case 'number':
      if (Number.isNaN(value)) return 'null' // as SQLite stores it
      if (!Number.isFinite(value)) return value > 0 ? '9e999' : '-9e999'
      return Number.isSafeInteger(value) ? String(value) : value.toExponential()
    case 'string':
      if (value.includes('\0')) throw new SqlError(`the value of ${parameter} contains a character of code 0`)
      return `'${value.replaceAll("'", "''")}'`
  }
  if (value === null) return 'null'
  if (!ArrayBuffer.isView(value))
    throw new SqlError(
      `the value of ${parameter} is ${typeof value}; expected a text, a number, a bigint, bytes or null`,
    )
  return `x'${Array.from(value, (byte) => byte.toString(16).padStart(2, '0')).join('')}'`
}

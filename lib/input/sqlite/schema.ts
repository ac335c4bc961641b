/** The columns of a table. */
export interface Columns {
  readonly names: readonly string[]
  /** Place of the column that stands for the row's own number (`INTEGER PRIMARY KEY`), or -1. */
  readonly rowid: number
}

const TOKENS = /--[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]|[(),]|[^\s(),'"`[]+/g
const CONSTRAINT = /^(?:CONSTRAINT|PRIMARY|UNIQUE|CHECK|FOREIGN)$/i

/** The columns that a `CREATE TABLE` statement, as SQLite keeps it, defines. */
export function columnsOf(sql: string): Columns {
  const definitions: string[][] = []
  let depth = 0
  for (const token of sql.match(TOKENS) ?? []) {
    if (token.startsWith('--') || token.startsWith('/*')) continue
    if (token === '(' && depth++ === 0) definitions.push([])
    else if (token === ')' && --depth === 0) break
    else if (token === ',' && depth === 1) definitions.push([])
    else if (depth > 0) definitions.at(-1)!.push(token)
  }
  const columns = definitions.filter(([name]) => name !== undefined && !CONSTRAINT.test(name))
  return {
    names: columns.map(([name]) => unquoted(name!)),
    rowid: columns.findIndex((words) => /^INTEGER .*\bPRIMARY KEY\b(?! DESC)/i.test(words.slice(1).join(' '))),
  }
}

function unquoted(name: string): string {
  return /^["`[]/.test(name) ? name.slice(1, -1).replaceAll('""', '"') : name
}

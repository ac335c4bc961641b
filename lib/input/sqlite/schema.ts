/** The value of a column in rows that were written before it was added. */
export type Default = number | bigint | string | null

/** A column of a table. */
export interface Column {
  readonly name: string
  /** Its place in stored rows; -1 where it is not stored (`GENERATED ALWAYS AS … VIRTUAL`). */
  readonly place: number
  /** Its default value; undefined: an expression, which is not evaluated. */
  readonly missing: Default | undefined
}

/** The columns of a table. */
export interface Columns {
  readonly columns: readonly Column[]
  /** Place of the column that is an alias of the rowid (`INTEGER PRIMARY KEY`), or -1. */
  readonly rowid: number
  /** Why its rows cannot be read; undefined: they can. */
  readonly refusal: string | undefined
}

interface Definition {
  readonly name: string
  readonly type: string
  readonly isRowid: boolean
  readonly isVirtual: boolean
  readonly missing: Default | undefined
}

const TOKENS =
  /--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|'(?:[^']|'')*(?:'|$)|"(?:[^"]|"")*(?:"|$)|`(?:[^`]|``)*(?:`|$)|\[[^\]]*(?:\]|$)|[(),]|[^\s(),'"`[]+/g
const TABLE_CONSTRAINT = /^(?:CONSTRAINT|PRIMARY|UNIQUE|CHECK|FOREIGN)$/i
const COLUMN_CONSTRAINT =
  /^(?:CONSTRAINT|PRIMARY|NOT|NULL|UNIQUE|CHECK|DEFAULT|COLLATE|REFERENCES|GENERATED|AS|ON|DEFERRABLE)$/i
const NUMBER = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i

/** The columns that a `CREATE TABLE` statement of the schema table defines. */
export function columnsOf(sql: string): Columns {
  const { parts, options } = partsOf(sql)
  const isColumn = ([name]: readonly string[]) => name !== undefined && !TABLE_CONSTRAINT.test(name)
  const definitions = parts.filter(isColumn).map(columnOf)
  const columns: Column[] = []
  let stored = 0
  for (const { name, isVirtual, missing } of definitions)
    columns.push({ name, missing, place: isVirtual ? -1 : stored++ })
  const key = parts
    .filter((part) => !isColumn(part))
    .map(keyOf)
    .find((name) => name !== undefined)
  const rowid = definitions.findIndex(
    ({ name, type, isRowid }) => isRowid || (type === 'INTEGER' && name.toUpperCase() === key?.toUpperCase()),
  )
  return { columns, rowid: columns[rowid]?.place ?? -1, refusal: refusalOf(sql, options) }
}

function refusalOf(sql: string, options: readonly string[]): string | undefined {
  if (/^\s*CREATE\s+VIRTUAL\b/i.test(sql)) return 'is a virtual table, which an extension of SQLite makes'
  const isWithoutRowid = /\bWITHOUT ROWID\b/i.test(options.join(' '))
  return isWithoutRowid ? 'is WITHOUT ROWID, which is stored in another way than other tables' : undefined
}

/** The definitions within the brackets, as words; and the words after them. */
function partsOf(sql: string): { readonly parts: readonly (readonly string[])[]; readonly options: readonly string[] } {
  const parts: string[][] = []
  const options: string[] = []
  let depth = 0
  for (const token of sql.match(TOKENS) ?? []) {
    if (token.startsWith('--') || token.startsWith('/*')) continue
    if (depth === 0 && parts.length > 0) options.push(token)
    else if (token === '(' && depth++ === 0) parts.push([])
    else if (token === ')' && --depth === 0) continue
    else if (token === ',' && depth === 1) parts.push([])
    else if (depth > 0) parts.at(-1)!.push(token)
  }
  return { parts, options }
}

function columnOf([first = '', ...words]: readonly string[]): Definition {
  const constraints = words.findIndex((word) => COLUMN_CONSTRAINT.test(word))
  const type = words
    .slice(0, constraints < 0 ? undefined : constraints)
    .join(' ')
    .toUpperCase()
  const outer = withoutNested(constraints < 0 ? [] : words.slice(constraints))
  const text = outer.map((word) => (/^["'`[]/.test(word) ? '?' : word)).join(' ')
  const given = outer.findIndex((word, i) => /^DEFAULT$/i.test(word) && !/^SET$/i.test(outer[i - 1] ?? ''))
  return {
    name: unquoted(first),
    type,
    isRowid: type === 'INTEGER' && /\bPRIMARY KEY\b(?! DESC\b)/i.test(text),
    isVirtual: /\bAS \( \)/i.test(text) && !/\bAS \( \) STORED\b/i.test(text),
    missing: given < 0 ? null : defaultOf(outer.slice(given + 1), type),
  }
}

/** Leaves out words in brackets. */
function withoutNested(words: readonly string[]): string[] {
  let depth = 0
  return words.filter((word) => {
    if (word === ')') depth--
    const isOuter = depth === 0
    if (word === '(') depth++
    return isOuter
  })
}

/** The one column of a table's `PRIMARY KEY (…)`. */
function keyOf(words: readonly string[]): string | undefined {
  const open = words.findIndex(
    (word, i) => word === '(' && /^KEY$/i.test(words[i - 1] ?? '') && /^PRIMARY$/i.test(words[i - 2] ?? ''),
  )
  const inside = open < 0 ? [] : words.slice(open + 1, words.indexOf(')', open))
  return inside.length === 0 || inside.includes(',') ? undefined : unquoted(inside[0]!)
}

/** The value of a `DEFAULT`, converted as the column's type requires. */
function defaultOf([first = '', second = '']: readonly string[], type: string): Default | undefined {
  const word = /^[+-]$/.test(first) ? first + second : first
  if (/^NULL$/i.test(word)) return null
  if (word === '(' || /^CURRENT_/i.test(word) || (/^x$/i.test(word) && second.startsWith("'"))) return undefined
  const isText = /CHAR|CLOB|TEXT/.test(type) && !type.includes('INT')
  if (/^(?:TRUE|FALSE)$/i.test(word)) return isText ? `${Number(/^T/i.test(word))}` : Number(/^T/i.test(word))
  if (NUMBER.test(word)) return isText ? textOf(Number(word), word) : numberOf(word)
  const text = unquoted(word)
  const isPlain = isText || type === '' || type.includes('BLOB')
  return !isPlain && NUMBER.test(text.trim()) ? numberOf(text.trim()) : text
}

function numberOf(word: string): number | bigint {
  const value = Number(word)
  return Number.isSafeInteger(value) || !/^[+-]?\d+$/.test(word)
    ? value
    : BigInt.asIntN(64, BigInt(word.replace('+', '')))
}

function textOf(value: number, word: string): string {
  return Number.isInteger(value) && /[.e]/i.test(word) ? `${value}.0` : `${numberOf(word)}`
}

function unquoted(name: string): string {
  const quote = /^["'`[]/.exec(name)?.[0]
  if (quote === undefined) return name
  return quote === '[' ? name.slice(1, -1) : name.slice(1, -1).replaceAll(quote + quote, quote)
}

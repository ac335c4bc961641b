import type { Cell } from './cells.ts'
import type { OpenTrace } from './open-trace.ts'

/** An argument's value as JSON, or what it contains. */
type Tree = string | Tree[] | Map<string, Tree>

/** Arguments as JSON, by the ids of their sets: those of the rows of a table with ids in `[from, to)`. */
export function argsOf(trace: OpenTrace, table: string, from: number, to: number): Map<number, string> {
  const sql = `SELECT arg_set_id, key, value_type, int_value, string_value, real_value FROM args WHERE arg_set_id IN
    (SELECT arg_set_id FROM ${table} WHERE id >= ${from} AND id < ${to}) ORDER BY id`
  const sets = new Map<number, Map<string, Tree>>()
  for (const [set, key, type, int, text, real] of trace.query(sql).rows) {
    let tree = sets.get(set as number)
    if (!tree) {
      tree = new Map()
      sets.set(set as number, tree)
    }
    const path = String(key).replace(/^(debug|args)\./, '')
    const value = leafOf(type!, int!, text!, real!)
    if (!put(tree, path.split(/\.|(?=\[\d+\])/), value)) tree.set(path, value)
  }
  return new Map([...sets].map(([set, tree]) => [set, jsonOfTree(tree)]))
}

function leafOf(type: Cell, int: Cell, text: Cell, real: Cell): string {
  if (type === 'bool') return int === 0 ? 'false' : 'true'
  if (type === 'pointer') return `"0x${BigInt.asUintN(64, BigInt(int as number)).toString(16)}"`
  if (type === 'string' || type === 'json') return text === '[]' || text === '{}' ? text : JSON.stringify(text)
  if (type === 'real') {
    const digits = String(real)
    if (!Number.isFinite(real)) return `"${digits}"`
    return /^-?\d+$/.test(digits) ? `${digits}.0` : digits // not to be read as an integer
  }
  return `${int ?? 'null'}`
}

/** Puts a value at a path. False if another value is in the way. */
function put(tree: Map<string, Tree>, path: readonly string[], value: string): boolean {
  let at: Tree = tree
  for (const [i, step] of path.entries()) {
    const index = /^\[(\d+)\]$/.exec(step)?.[1]
    const isLast = i === path.length - 1
    const next = isLast ? value : /^\[\d+\]$/.test(path[i + 1]!) ? [] : new Map<string, Tree>()
    if (Array.isArray(at)) {
      if (index === undefined) return false
      const place = Number(index)
      // trace_processor does not count null in a list, but empty lists.
      while (at.length < place) at.push([])
      const known: Tree | undefined = at[place]
      if (known === undefined || (isLast && Array.isArray(known) && known.length === 0)) at[place] = next
      else if (isLast || typeof known === 'string') return false
      at = at[place]!
    } else if (typeof at === 'string') return false
    else {
      const known: Tree | undefined = at.get(step)
      if (known === undefined) at.set(step, next)
      else if (isLast || typeof known === 'string') return false
      at = at.get(step)!
    }
  }
  return true
}

function jsonOfTree(tree: Tree): string {
  if (typeof tree === 'string') return tree
  if (Array.isArray(tree)) return `[${tree.map(jsonOfTree).join(',')}]`
  return `{${[...tree].map(([key, value]) => `${JSON.stringify(key)}:${jsonOfTree(value)}`).join(',')}}`
}

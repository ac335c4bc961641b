import { type Dag, type NodeValues, UsageError } from '../../lib/cli.ts'
import { readInput, readWhole, textOfFile } from '../inputs.ts'

/** Values of nodes from a CSV file, or from stdin for `-`: lines `name,value` or `name,op,value`; a first line with names of columns may have them in any order. */
export async function readValues(path: string): Promise<NodeValues> {
  const text =
    path === '-' ? new TextDecoder().decode(await readWhole(readInput(path))) : await textOfFile('--color-csv', path)
  const [first, ...others] = text
    .replace(/^\ufeff/, '')
    .split(/\r?\n/)
    .flatMap((line, i) => (line.trim() === '' ? [] : [{ cells: cellsOf(line), line: i + 1 }]))
  if (!first) throw new UsageError(`--color-csv ${path}: no lines; expected name,value`)
  const titles = first.cells.map((cell) => cell.toLowerCase())
  const hasTitles = titles.includes('name')
  const columns = hasTitles ? titles : first.cells.length > 2 ? ['name', 'op', 'value'] : ['name', 'value']
  const [name, op] = [columns.indexOf('name'), columns.indexOf('op')]
  const value = columns.findIndex((title, i) => i !== name && i !== op && (title === 'value' || columns.length < 4))
  if (value < 0)
    throw new UsageError(`--color-csv ${path}: line 1: no column "value"; expected name,value or name,op,value`)
  const values = new Map<string, number>()
  for (const { cells, line } of hasTitles ? others : [first, ...others]) {
    const [key, number] = [op < 0 ? cells[name] : `${cells[name]} ${cells[op]}`, Number(cells[value] || Number.NaN)]
    if (key === undefined || !Number.isFinite(number))
      throw new UsageError(
        `--color-csv ${path}: line ${line}: ${JSON.stringify(cells[value] ?? '')} is not a number; expected ${columns.join(',')}`,
      )
    values.set(key, number)
  }
  const title = hasTitles && columns[value] !== 'value' ? first.cells[value]! : path
  return { title, of: ({ name, op: operator }) => values.get(op < 0 ? name : `${name} ${operator}`) }
}

/** Throws UsageError if no node has a value: the names are of another run. */
export function refuseUnknown({ title, of: figureOf }: NodeValues, { nodes }: Dag): void {
  if (nodes.some((node) => figureOf(node) !== undefined)) return
  const example = nodes.find(({ kind }) => kind === 'operator') ?? nodes[0]
  const hint = example ? `\nhint: a name is a tensor's, such as ${example.name}` : ''
  throw new UsageError(`--color-csv: no node has a name of ${title}${hint}`)
}

/** Cells of a line of CSV. */
function cellsOf(line: string): string[] {
  const cells = [...line.matchAll(/(?:^|,)\s*(?:"((?:[^"]|"")*)"|([^,]*))/g)]
  return cells.map(([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain!.trim())
}

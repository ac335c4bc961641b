import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { GGML_PACKAGE, GGML_SQL, GGML_SUMMARY, UsageError } from '../../lib/cli.ts'
import { print, systemReason } from '../terminal.ts'

/** Prints the views of the SQL package ggml, or writes into a folder what other tools of Perfetto read: the package, the summary spec, an extension server. */
export async function printPackage(folder: string): Promise<void> {
  if (folder === '') return print(GGML_SQL.trimEnd())
  await refuseOthers(folder)
  for (const [name, text] of filesOf()) {
    const path = join(folder, name)
    try {
      await mkdir(dirname(path), { recursive: true })
      await writeFile(path, text)
    } catch (error) {
      const reason = systemReason(error)
      if (reason === undefined) throw error
      throw new UsageError(`${path}: cannot be written: ${reason}`)
    }
  }
}

/** Throws UsageError where a file would be replaced in a folder that no earlier `--package` made. */
async function refuseOthers(folder: string): Promise<void> {
  const textOf = (name: string) => readFile(join(folder, name), 'utf8').catch(() => undefined)
  if ((await textOf('manifest'))?.includes('"name": "ggml2perfetto"')) return
  for (const [name] of filesOf())
    if ((await textOf(name)) !== undefined)
      throw new UsageError(
        `${join(folder, name)}: is not of the package ggml, and would be lost\nhint: name another folder`,
      )
}

function filesOf(): (readonly [string, string])[] {
  const { name, modules } = GGML_PACKAGE
  const ofServer = {
    name: 'ggml2perfetto',
    namespace: name,
    features: [{ name: 'sql_modules' }],
    modules: [{ id: 'default', name: 'Default' }],
  }
  const sql_modules = Object.entries(modules).map(([module, sql]) => ({ name: `${name}.${module}`, sql }))
  return [
    ...Object.entries(modules).map(([module, sql]) => [join(name, `${module}.sql`), sql] as const),
    ['ggml.textproto', GGML_SUMMARY],
    ['manifest', json(ofServer)],
    [join('modules', 'default', 'sql_modules'), json({ sql_modules })],
  ]
}

const json = (value: object) => `${JSON.stringify(value, null, 2)}\n`

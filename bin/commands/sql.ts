import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { ArgumentsCamelCase, CommandModule } from 'yargs'
import { GGML_PACKAGE, GGML_SQL, GGML_SUMMARY, UsageError } from '../../lib/cli.ts'
import { print, systemReason } from '../terminal.ts'

interface Arguments {
  folder?: string | undefined
}

/** `ggml2perfetto sql [folder]` */
export const sqlCommand: CommandModule<object, Arguments> = {
  command: 'sql [folder]',
  describe: 'Print the SQL package ggml for the Perfetto UI, or write it for trace_processor_shell and Python',
  builder: (yargs) =>
    yargs
      .usage(
        '$0 sql [folder]\n\nPrints the views of the SQL package ggml as one text, to be pasted into the query page of the Perfetto UI. ' +
          'With a folder, it writes there what other tools of Perfetto read: the package (ggml/), the summary spec (ggml.textproto), ' +
          'and the files of an extension server for the UI (manifest, modules/). `query` knows the package by itself.',
      )
      .positional('folder', { type: 'string', describe: 'Write the files here; it is created if it does not exist' })
      .example('$0 sql perfetto', 'then: trace_processor_shell summarize --add-sql-package perfetto/ggml …'),
  handler,
}

async function handler({ folder }: ArgumentsCamelCase<Arguments>): Promise<void> {
  if (folder === undefined) return print(GGML_SQL.trimEnd())
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

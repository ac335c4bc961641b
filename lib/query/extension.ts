import { GGML_PACKAGE } from './ggml-package.ts'
import { EXTENSION_PATH } from './view.ts'

const { name, modules } = GGML_PACKAGE

const MANIFEST = {
  name: 'ggml2perfetto',
  namespace: name,
  features: [{ name: 'sql_modules' }],
  modules: [{ id: 'default', name: 'Views of calls, operators, workers, requests' }],
}

const SQL_MODULES = {
  sql_modules: Object.entries(modules).map(([module, sql]) => ({ name: `${name}.${module}`, sql })),
}

/**
 * An extension server of the Perfetto UI as files, by their paths: with it, `INCLUDE PERFETTO MODULE ggml.operators` works in the UI. Source: Perfetto
 * v55.3, docs/visualization/extension-server-protocol.md and ui/src/core_plugins/dev.perfetto.ExtensionServers/types.ts.
 */
export const EXTENSION: ReadonlyMap<string, string> = new Map([
  [`${EXTENSION_PATH}/manifest`, JSON.stringify(MANIFEST)],
  [`${EXTENSION_PATH}/modules/default/sql_modules`, JSON.stringify(SQL_MODULES)],
])

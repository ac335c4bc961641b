/**
 * Writes lib/generated/option-names.ts: names of the options of all functions that the entries of the package export, by which others are refused.
 * With --check, writes nothing and exits 1 if the committed file is stale.
 */
import { join } from 'node:path'
import ts from 'typescript'
import { checker, entries, fileOf, program, root } from './entries.mjs'
import { put } from './generated.mjs'

const path = join(root, 'lib/generated/option-names.ts')

/** Names of options by the function that has them; those of one name in several entries have the same. */
const found = new Map()
for (const entry of entries) {
  const module = checker.getSymbolAtLocation(program.getSourceFile(fileOf(entry)))
  for (const exported of checker.getExportsOfModule(module)) {
    const symbol = exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported
    if (!(symbol.flags & ts.SymbolFlags.Value)) continue
    const type = checker.getTypeOfSymbol(symbol)
    for (const signature of [...type.getCallSignatures(), ...type.getConstructSignatures()]) {
      const parameter = signature.parameters.find(({ name }) => /^(options|range|which)$/.test(name))
      if (!parameter || symbol.declarations[0].getSourceFile().fileName.includes('node_modules')) continue
      const given = checker.getNonNullableType(checker.getTypeOfSymbol(parameter))
      found.set(exported.name, [
        ...new Set([...(found.get(exported.name) ?? []), ...given.getProperties().map(({ name }) => name)]),
      ])
    }
  }
}
const constantOf = (name) => `${name.replace(/(?<=[a-z])[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}_OPTIONS`
const lines = [...found]
  .filter(([name]) => !/Error$/.test(name))
  .sort(([a], [b]) => (a < b ? -1 : 1))
  .map(
    ([name, names]) =>
      `\n/** Options of \`${name}\`. */\nexport const ${constantOf(name)}: readonly string[] = ${JSON.stringify(names.sort())}\n`,
  )
const text = `// Generated from the entries in lib by scripts/option-names.mjs; do not edit.\n${lines.join('')}`
put(path, text, 'option-names')

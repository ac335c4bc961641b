import { readFileSync, writeFileSync } from 'node:fs'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

/** Writes a generated file. With --check, writes nothing: that it is stale is an error. */
export function put(path, text, script) {
  if (readFileSync(path, { encoding: 'utf8', flag: 'a+' }) === text) return
  if (process.argv.includes('--check')) throw new Error(`${relative(root, path)} is stale: node scripts/${script}.mjs`)
  writeFileSync(path, text)
}

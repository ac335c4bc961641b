import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../root.ts'

const FOLDERS = ['test/fixtures', 'test/gpu/logs', 'test/printed/logs', 'examples']

/** Paths of all stored logs, companions and files that are no log included. */
export const STORED_LOGS: readonly string[] = FOLDERS.flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.\w+$/.test(name) && !/\.(?:md|mjs|py|ts|c|html)$/.test(name))
    .map((name) => join(ROOT, folder, name)),
).sort()

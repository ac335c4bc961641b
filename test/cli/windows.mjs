/**
 * Loaded before the CLI by --import: its modules get Windows' rules for paths, on any system. `node:path` is that of Windows, drive C: is the folder
 * $WINDOWS_C, the current folder is C:\work, and files of the package are on drive P:. Files are read and written by the functions of `node:fs`, to which
 * paths are given as this system has them; what these return are paths as Windows has them.
 */
import { register, syncBuiltinESMExports } from 'node:module'
import { win32 } from 'node:path'
import { env } from 'node:process'

const C = env.WINDOWS_C

const toReal = (path) => {
  const [, drive, rest] = /^(?:([A-Z]):)?(.*)$/s.exec(path)
  const slashes = rest.replaceAll('\\', '/')
  if (drive === 'P') return slashes
  if (drive !== undefined && drive !== 'C') throw Object.assign(new Error(`no drive ${drive}:`), { code: 'ENOENT' })
  return win32.isAbsolute(path) ? `${C}${slashes}` : slashes
}
const toWindows = (path) => (path.startsWith(`${C}/`) ? `C:${path.slice(C.length)}` : `P:${path}`).replaceAll('/', '\\')

/** Functions with two paths; and such that return one, or several. */
const TWO = /^(?:rename|copyFile|cp|link)(?:Sync)?$/
const ONE_BACK = /^(?:realpath|mkdir|mkdtemp|readlink)(?:Sync)?$/
const LIST_BACK = /^readdir(?:Sync)?$/

const returned = (name, value) => {
  if (value instanceof Promise) return value.then((result) => returned(name, result))
  if (ONE_BACK.test(name) && typeof value === 'string') return toWindows(value)
  if (LIST_BACK.test(name))
    return value.map((entry) => (typeof entry === 'string' ? entry.replaceAll('/', '\\') : entry))
  return value
}

globalThis[Symbol.for('windows')] = {
  path: win32,
  toWindows,
  /** A function of `node:fs` or `node:fs/promises` with paths of Windows. */
  wrapped: (name, real) => {
    if (typeof real !== 'function' || !/^[a-z]/.test(name)) return real
    const paths = TWO.test(name) ? 2 : 1
    return (...args) =>
      returned(name, real(...args.map((arg, i) => (i < paths && typeof arg === 'string' ? toReal(arg) : arg))))
  },
}
process.cwd = () => 'C:\\work'
process.geteuid = undefined
process.getuid = undefined
syncBuiltinESMExports()
register(new URL('windows-hooks.mjs', import.meta.url))

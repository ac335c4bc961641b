import { open, readdir, readFile, readlink, stat } from 'node:fs/promises'
import { Names } from '../../model/names.ts'
import { eventsOf } from '../../pipeline/known-formats.ts'

/** Of a file's start that is read: enough for lines of a server before the first request. */
const HEAD_BYTES = 1 << 16
/** Files of a process that are looked at. */
const FILES_MAX = 64

/** The file to which a llama-server writes its log (`--log-file`, or its stderr or stdout); undefined: it has none, or is another program. */
export async function serverLogOf(pid: number): Promise<string | undefined> {
  const files = await readdir(`/proc/${pid}/fd`).catch(() => [])
  for (const file of files.slice(0, FILES_MAX)) {
    const path = await writtenFile(pid, file).catch(() => undefined)
    if (path !== undefined && (await isServerLog(path).catch(() => false))) return path
  }
  return undefined
}

/** The path of a regular file that the process has open for writing, as this process sees it. */
async function writtenFile(pid: number, file: string): Promise<string | undefined> {
  const flags = /^flags:\s*([0-7]+)$/m.exec(await readFile(`/proc/${pid}/fdinfo/${file}`, 'latin1'))?.[1]
  if (flags === undefined || (Number.parseInt(flags, 8) & 3) === 0) return undefined
  const [own, path] = [await stat(`/proc/${pid}/fd/${file}`), await readlink(`/proc/${pid}/fd/${file}`)]
  if (!own.isFile()) return undefined
  for (const seen of [path, `/proc/${pid}/root${path}`]) {
    const its = await stat(seen).catch(() => undefined)
    if (its?.ino === own.ino && its.dev === own.dev) return seen
  }
  return undefined
}

async function isServerLog(path: string): Promise<boolean> {
  const file = await open(path)
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0)
    const head = { name: path, source: buffer.subarray(0, bytesRead) }
    for await (const [first] of eventsOf(head, new Names()))
      return first?.kind === 'input' && first.format === 'llama-server'
    return false
  } finally {
    await file.close()
  }
}

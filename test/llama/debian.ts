import { spawnSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * The newest llama.cpp that Debian has, its own tools, in a folder made of Debian's packages. Fetched where it is missing.
 */

/** The root folder of those programs. */
export const ROOT = join(tmpdir(), 'ggml2perfetto-debian')
const FETCH = fileURLToPath(new URL('../../scripts/fetch-debian.mjs', import.meta.url))
const PACKAGES = ['coreutils', 'llama.cpp-tools', 'llama.cpp-tools-extra', 'llama.cpp-examples', 'whisper.cpp']

/** Fetches them. Why they cannot be tried here; undefined where they can. */
export function whyNoDebian(): string | undefined {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'needs root, for chroot'
  const { status, stderr } = spawnSync('flock', [`${ROOT}.lock`, process.execPath, FETCH, ROOT, ...PACKAGES])
  return status === 0 ? undefined : `needs Debian’s packages: ${`${stderr}`.trim().split('\n').at(-1)}`
}

/** The path of a file below {@link ROOT}, as programs in there see it. */
export const inRoot = (path: string) => path.slice(ROOT.length)

/** With its own /proc and with /sys, where a container lets us mount them: the recorder reads the kernel's clock source there. */
export const IN_ROOT = [
  'unshare',
  '-m',
  'sh',
  '-c',
  'mount -t proc proc "$0/proc" 2>/dev/null; mkdir -p "$0/sys" && mount --rbind /sys "$0/sys" 2>/dev/null; exec chroot "$0" "$@"',
  ROOT,
]

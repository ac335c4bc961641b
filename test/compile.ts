import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** How programs of tests are compiled: a warning is an error, and llama.cpp's own headers declare its functions where they are there. */

const pathOf = (name: string) => fileURLToPath(new URL(name, import.meta.url))

/** Of llama.cpp, when ensureLlama() has put it there (llama/testbed.ts). */
export const INCLUDE = pathOf('../vendor/llama/include')

/** Flags of all C programs of tests. `llama/stand-in.h` is for what calls llama.cpp's functions, or stands for them. */
export const C_FLAGS = [
  ...['-std=gnu11', '-Wall', '-Wextra', '-Werror', '-Wstrict-prototypes', '-Wmissing-prototypes'],
  ...[pathOf('llama'), INCLUDE].flatMap((folder) => ['-I', folder]),
]

/** Compiles a program or a library of a test. Folders of headers in the arguments come first, such as those of another version. */
export const cc = (...args: readonly string[]) => void execFileSync('cc', [...args, ...C_FLAGS])

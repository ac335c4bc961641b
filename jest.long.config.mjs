import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import config from './jest.config.mjs'

/** Test files that take a part of their cases in `npm test`: here are the others (test/long.ts). */
const root = fileURLToPath(new URL('test/', import.meta.url))
const inParts = readdirSync(root, { recursive: true })
  .filter(
    (name) =>
      name.endsWith('.test.ts') && /\binLong\(|\binParts\(|\blineTest\(/.test(readFileSync(join(root, name), 'utf8')),
  )
  .map((name) => `**/test/${name}`)

/**
 * Heavy proofs, which need what a contributor's machine may not have: llama-server and other builds of llama.cpp, Debian's in a chroot, another architecture,
 * Vulkan on the CPU, other runtimes, a browser; damage of each fixture, and what takes long.
 */
export default {
  ...config,
  globals: { isLong: true },
  testMatch: ['**/*.long.test.ts', ...inParts],
  testPathIgnorePatterns: ['/node_modules/'],
  testTimeout: 900_000, // some compile llama.cpp
}

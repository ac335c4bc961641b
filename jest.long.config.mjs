import config from './jest.config.mjs'

/**
 * Heavy proofs, which need what a contributor's machine may not have: other builds of llama.cpp, Debian's in a chroot, another architecture,
 * Vulkan on the CPU, other runtimes, a browser; damage of each fixture, and what takes long.
 */
export default {
  ...config,
  globals: { isLong: true },
  testMatch: [
    '**/*.long.test.ts',
    '**/test/{cli/next-query,line/pairs,server/requests,native/server-queue,llama/server}.test.ts',
  ],
  testPathIgnorePatterns: ['/node_modules/'],
}

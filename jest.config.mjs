import { availableParallelism } from 'node:os'

/** Tests run on the TypeScript sources, of lib as one file; swc only strips the types (`npm run types` checks them). */
export default {
  testEnvironment: '<rootDir>/test/environment.cjs',
  roots: ['<rootDir>/test'],
  testPathIgnorePatterns: ['\\.long\\.test\\.ts$'], // npm run test:long
  extensionsToTreatAsEsm: ['.ts', '.sql', '.textproto'],
  transform: {
    '\\.ts$': [
      '<rootDir>/test/lib-transform.mjs',
      { jsc: { target: 'es2022', parser: { syntax: 'typescript' } }, module: { type: 'es6' } },
    ],
    '\\.(sql|textproto)$': '<rootDir>/test/text-transform.cjs',
  },
  globalSetup: '<rootDir>/test/lib-bundle.mjs',
  moduleNameMapper: {
    '^fast-check$': '<rootDir>/test/seed.ts',
    '^(?:\\.{1,2}/)+version\\.ts$': '<rootDir>/test/version.ts',
  },
  workerIdleMemoryLimit: '300MB', // what suites leave behind is searched by each garbage collection of the next
  testTimeout: 300_000, // ends what hangs; a busy machine is no fault
  maxWorkers: Math.ceil(1.5 * availableParallelism()), // tests wait an eighth of their time, for programs, ports and clocks
}

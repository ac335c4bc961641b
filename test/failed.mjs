import { existsSync, readFileSync, writeFileSync } from 'node:fs'

/**
 * For .ci/run: writes the test files in which something failed to the file that FAILED_TESTS names, one a line; where that file has some, only these
 * are run, one after the other. A test that needs more of the machine than others left passes then; a fault fails each time.
 */
export default class FailedTests {
  constructor(_, { path }) {
    this.path = path
  }

  onRunComplete(_, { testResults }) {
    const failed = testResults.filter(({ numFailingTests, testExecError }) => numFailingTests > 0 || testExecError)
    writeFileSync(this.path, failed.map(({ testFilePath }) => `${testFilePath}\n`).join(''))
  }
}

/** More test files than that do not fail by chance. */
const AGAIN_MAX = 4

/** What the configuration of jest has where FAILED_TESTS is set. */
export function failedTests(path = process.env['FAILED_TESTS']) {
  if (!path) return {}
  const failed = existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter(Boolean) : []
  if (failed.length > AGAIN_MAX) throw new Error(`${failed.length} test files failed`)
  const reporters = ['default', [new URL(import.meta.url).pathname, { path }]]
  return failed.length > 0 ? { reporters, testMatch: failed, maxWorkers: 1 } : { reporters }
}

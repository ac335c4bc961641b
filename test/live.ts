import { jest } from '@jest/globals'

/**
 * For suites that hold what the kernel records in two ways against each other, or the times of one run against each other. Such records
 * are lost where other programs keep the machine busy, times change, and a tracing buffer may meet those of other recordings: such a
 * test is tried again, and its error is printed. A real fault fails each time.
 */
jest.retryTimes(2, { logErrorsBeforeRetry: true })

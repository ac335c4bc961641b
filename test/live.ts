import { jest } from '@jest/globals'

/**
 * For suites that measure what this machine does just now, beside other tests and whatever else it is busy with: a test that was
 * disturbed is tried again, and what it said is printed. A real fault fails each time.
 */
jest.retryTimes(2, { logErrorsBeforeRetry: true })

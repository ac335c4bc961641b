import { expect, test } from '@jest/globals'
import { convert, FormatError, type Input, restoreError, summarize, type UsageError } from '../../lib/index.ts'
import { summarizeFile } from '../../lib/node.ts'

const errorOf = async (running: Promise<unknown>) =>
  running.then(
    () => undefined,
    (error: unknown) => error as Error,
  )

test('an error that a worker posts keeps its fields', async () => {
  const error = await errorOf(summarize({ name: 'log', source: new Uint8Array([1, 2, 3]) }, { from: 'ggtrace' }))
  expect(error).toBeInstanceOf(FormatError)
  const restored = restoreError(structuredClone((error as FormatError).toJSON())) as FormatError
  expect(restored).toBeInstanceOf(FormatError)
  expect(restored.toJSON()).toEqual((error as FormatError).toJSON())
  expect(restored).toMatchObject({ format: 'ggtrace', input: 'log', at: { byte: expect.any(Number) } })
})

test('the error of a file has the code and the error of the system', async () => {
  const error = (await errorOf(summarizeFile('/no/such/log'))) as UsageError
  expect(error).toMatchObject({ name: 'UsageError', code: 'ENOENT', cause: { code: 'ENOENT', syscall: 'open' } })
  expect(restoreError(structuredClone(error.toJSON()))).toMatchObject({
    name: 'UsageError',
    code: 'ENOENT',
    message: error.message,
  })
})

test('a path in place of an input is a wrong use, with what to do', async () => {
  const error = await errorOf(convert('calls.csv' as unknown as Input).next())
  expect(error).toMatchObject({
    name: 'UsageError',
    message: expect.stringMatching(/found "calls.csv"\nhint: .*convertFile/),
  })
})

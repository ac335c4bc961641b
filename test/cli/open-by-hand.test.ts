import { get, type IncomingMessage } from 'node:http'
import { expect, test } from '@jest/globals'
import { at, MOE, run, useFolder } from './helpers.ts'
import { opened, usePort } from './open-helpers.ts'

/** `open` where no browser is opened here. */

useFolder()
usePort()

test('the short URL leads to the one that is printed; without a browser it ends after --wait', async () => {
  run([MOE, '-o', at('moe.pftrace')])
  const { url, ended } = await opened(['moe.pftrace', '--no-browser', '--wait', '2'])
  const response = await new Promise<IncomingMessage>((resolve) => get('http://127.0.0.1:9001/', resolve))
  expect([response.statusCode, response.headers.location]).toEqual([302, url])
  const { code, stderr } = await ended
  expect(code).toBe(0)
  expect(stderr).toMatch(/^shorter: http:\/\/127\.0\.0\.1:9001\/, /m)
  expect(stderr).toMatch(/^for a browser on another machine, first run there: ssh -L 9001:127\.0\.0\.1:9001 /m)
  expect(stderr).toMatch(/ended: no browser fetched the trace in 2 s\n$/)
})

import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from '@jest/globals'
import { ROOT } from '../root.ts'

/** What the commands print about all stored logs, as it was read and found good. */

test('what the commands print is what is stored; after a change of texts: npm run texts, and read the difference', async () => {
  const script = join(ROOT, 'scripts/printed-texts.mjs')
  const { stdout } = await promisify(execFile)(process.execPath, [script, '-'], { maxBuffer: 1 << 26 })
  const stored = readFileSync(join(ROOT, 'test/printed/texts.txt'), 'utf8').split('\n')
  expect(stdout.split('\n')).toEqual(stored)
})

import { expect } from '@jest/globals'
import { convert, type Input } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import type { Cell } from '../../lib/sql.ts'

/** What tests of companions share: inputs from texts, and lines as the logger writes them. */

export const encode = (text: string) => new TextEncoder().encode(text)
export const json = (value: unknown) => encode(JSON.stringify(value))
export const input = (name: string, source: Uint8Array): Input => ({ name, source })

export const line = (fields: string) => `${fields}\n`
export const alloc = (ms: number, id: string, size: number, name: string, pointer = '0') =>
  line(
    `{"timestamp_ms":${ms.toFixed(3)},"event":"alloc","buffer_id":${id},"buffer_ptr":${pointer},"size":${size},` +
      `"name":"${name}","backend":"CPU","usage":2,"layer":65535}`,
  )
export const dealloc = (ms: number, id: string) =>
  line(`{"timestamp_ms":${ms.toFixed(3)},"event":"dealloc","buffer_id":${id}}`)

/** What a query finds in the trace of these inputs. */
export async function rowsOf(
  inputs: readonly Input[],
  sql: string,
  detail: 'shapes' | 'full' = 'shapes',
): Promise<(Cell | undefined)[][]> {
  const open = await openTrace(convert(inputs, { detail }))
  try {
    expect(open.problems()).toEqual([])
    return open.query(sql).rows
  } finally {
    open.close()
  }
}

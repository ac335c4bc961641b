import { isSqlite } from '../../../input/sqlite/magic.ts'
import type { Format } from '../../format.ts'

export const nsys: Format = {
  name: 'nsys',
  title: 'Nsight Systems: nsys export --type sqlite',

  sniff: isSqlite,

  async *read(source, context) {
    yield* (await import('./report-reader.ts')).readReport(source, context)
  },
}

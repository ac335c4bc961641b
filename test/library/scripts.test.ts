import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'

import { ROOT } from '../root.ts'

/** Exported names of an entry, also those that it takes from all of another file. */
const entries: Record<string, () => Promise<object>> = {
  '': () => import('../../lib/index.ts'),
  '/core': () => import('../../lib/core.ts'),
  '/node': () => import('../../lib/node.ts'),
  '/perfetto': () => import('../../lib/perfetto.ts'),
  '/report': () => import('../../lib/report.ts'),
  '/sql': () => import('../../lib/sql.ts'),
  '/analysis': () => import('../../lib/analysis.ts'),
  '/tables': () => import('../../lib/tables.ts'),
  '/datasets': () => import('../../lib/datasets.ts'),
  '/worker': () => import('../../lib/worker.ts'),
}

test.each(['scripts', 'examples'])('%s import only what the package exports: benchmarks run rarely', async (folder) => {
  const missing: string[] = []
  let imports = 0
  const files = readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).filter((name) =>
    /\.m?[jt]s$/.test(name),
  )
  for (const name of files) {
    const text = readFileSync(join(ROOT, folder, name), 'utf8')
    for (const [, names, entry] of text.matchAll(/^import \{([^}]*)\} from 'ggml2perfetto(\/\w+)?'/gm)) {
      const exported = await entries[entry ?? '']!()
      for (const imported of names!.split(',').map((one) => one.trim().split(' as ')[0]!)) {
        if (imported === '' || imported.startsWith('type ')) continue
        imports++
        if (!(imported in exported)) missing.push(`${folder}/${name}: ${imported}`)
      }
    }
  }
  expect(imports).toBeGreaterThan(0)
  expect(missing).toEqual([])
})

/**
 * Writes lib/generated from proto/. With --check, writes nothing and exits 1 if what is committed is stale.
 *
 * - proto/perfetto.proto → perfetto.ts: only the numbers, for a writer that puts bytes together itself.
 * - proto/trace_processor.proto → trace_processor.js and .d.ts: protobufjs's static encoders and decoders.
 */
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import protobuf from 'protobufjs'
import pbjs from 'protobufjs-cli/pbjs.js'

const root = fileURLToPath(new URL('..', import.meta.url))
const header = (source) => `// Generated from proto/${source} by scripts/generate-proto.mjs; do not edit.\n`

const constant = (name, comment, entries) => {
  const lines = entries.map(([key, value]) => `  ${key} = ${value},\n`)
  return `\n/** ${comment} */\nexport enum ${name} {\n${lines.join('')}}\n`
}

/** Every message and enum below `namespace`, depth first, as an enum of TypeScript: bundlers put its numbers where they are used. */
const constants = (namespace) =>
  namespace.nestedArray.flatMap((item) => {
    const path = item.fullName.slice(1)
    if (item instanceof protobuf.Enum) {
      const name = item.parent instanceof protobuf.Type ? item.parent.name + item.name : item.name
      return [constant(name, `Values of the enum ${path}.`, Object.entries(item.values))]
    }
    const fields = item.fieldsArray.map((field) => [field.name, field.id])
    return [constant(item.name, `Field numbers of the message ${path}.`, fields), ...constants(item)]
  })

const fieldNumbers = async () => {
  const source = await readFile(join(root, 'proto/perfetto.proto'), 'utf8')
  const parsed = protobuf.parse(source, new protobuf.Root(), { keepCase: true })
  // The package's own name would be noise in the comments.
  const texts = constants(parsed.root.lookup(parsed.package)).map((text) => text.replace(`${parsed.package}.`, ''))
  const names = texts.map((text) => /export enum (\w+)/.exec(text)[1])
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice) throw new Error(`proto/perfetto.proto gives two constants the name ${twice}; rename one`)
  return { 'perfetto.ts': header('perfetto.proto') + texts.join('') }
}

const codec = async () => {
  const folder = await mkdtemp(join(tmpdir(), 'ggml2perfetto-proto-'))
  const out = join(folder, 'trace_processor.js')
  const leaveOut = ['create', 'verify', 'convert', 'delimited', 'typeurl', 'service'].map((part) => `--no-${part}`)
  const shape = ['--target', 'static-module', '--wrap', 'esm', '--root', 'ggml2perfetto', '--force-number', '--dts']
  try {
    await promisify(pbjs.main)([...shape, ...leaveOut, '--out', out, join(root, 'proto/trace_processor.proto')])
    const files = {}
    for (const name of ['trace_processor.js', 'trace_processor.d.ts']) {
      const text = await readFile(join(folder, name), 'utf8')
      // Nothing here is a Long, and this way to import it is not allowed in a module.
      files[name] = header('trace_processor.proto') + text.replace('import Long = require("long");\n', '')
    }
    return files
  } finally {
    await rm(folder, { recursive: true })
  }
}

const isFresh = async (path, text) => (await readFile(path, 'utf8').catch(() => '')) === text

const files = { ...(await fieldNumbers()), ...(await codec()) }
const check = process.argv.includes('--check')
await mkdir(join(root, 'lib/generated'), { recursive: true })
for (const [name, text] of Object.entries(files)) {
  const path = join(root, 'lib/generated', name)
  if (await isFresh(path, text)) continue
  if (check) {
    console.error(`lib/generated/${name} does not match proto/: run \`npm run proto\` and commit the result`)
    process.exitCode = 1
  } else {
    await writeFile(`${path}.tmp`, text)
    await rename(`${path}.tmp`, path)
    console.log(`wrote lib/generated/${name}`)
  }
}

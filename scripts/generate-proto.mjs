/**
 * Writes lib/generated from proto/: of each .proto file the numbers of its fields and enums. With --check, writes nothing
 * and exits 1 if the committed files are stale.
 */
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import protobuf from 'protobufjs'

const root = fileURLToPath(new URL('..', import.meta.url))

const constant = (name, comment, entries) => {
  const lines = entries.map(([key, value]) => `  ${key} = ${value},\n`)
  return `\n/** ${comment} */\nexport enum ${name} {\n${lines.join('')}}\n`
}

/** Every message and enum in `namespace`, depth first, as an enum of TypeScript: bundlers inline its numbers. */
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

const generated = async (source) => {
  const text = await readFile(join(root, 'proto', source), 'utf8')
  const parsed = protobuf.parse(text, new protobuf.Root(), { keepCase: true })
  // The package's own name would be noise in the comments.
  const texts = constants(parsed.root.lookup(parsed.package)).map((text) => text.replace(`${parsed.package}.`, ''))
  const names = texts.map((text) => /export enum (\w+)/.exec(text)[1])
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice) throw new Error(`proto/${source} gives two constants the name ${twice}; rename one`)
  return `// Generated from proto/${source} by scripts/generate-proto.mjs; do not edit.\n${texts.join('')}`
}

const isFresh = async (path, text) => (await readFile(path, 'utf8').catch(() => '')) === text

const check = process.argv.includes('--check')
await mkdir(join(root, 'lib/generated'), { recursive: true })
for (const source of await readdir(join(root, 'proto'))) {
  const name = source.replace('.proto', '.ts')
  const [path, text] = [join(root, 'lib/generated', name), await generated(source)]
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

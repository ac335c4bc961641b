/** Hooks of Node for windows.mjs: modules of the package in dist/ get other ones of these names. */

const NAMES = /^(?:node:)?(path|fs|fs\/promises|url)$/
const SCHEME = 'windows:'

export function resolve(specifier, context, next) {
  const name = NAMES.exec(specifier)?.[1]
  if (name === undefined || !/\/dist\//.test(context.parentURL ?? '')) return next(specifier, context)
  return { url: `${SCHEME}${name}`, format: 'module', shortCircuit: true }
}

/** What is exported for each name of a module, as source. */
const VALUES = {
  path: (name) => `windows.path.${name}`,
  url: (name) => (name === 'fileURLToPath' ? '(url) => windows.toWindows(real.fileURLToPath(url))' : `real.${name}`),
  fs: (name) => `windows.wrapped('${name}', real.${name})`,
}

export async function load(url, context, next) {
  if (!url.startsWith(SCHEME)) return next(url, context)
  const module = `node:${url.slice(SCHEME.length)}`
  const names = Object.keys(await import(module)).filter((name) => name !== 'default' && name !== 'module.exports')
  const value = VALUES[/^node:(\w+)/.exec(module)[1]]
  const source = [
    `import * as real from '${module}'`,
    `const windows = globalThis[Symbol.for('windows')]`,
    ...names.map((name) => `export const ${name} = ${value(name)}`),
    `export default { ${names.join(', ')} }`,
  ].join('\n')
  return { format: 'module', source, shortCircuit: true }
}

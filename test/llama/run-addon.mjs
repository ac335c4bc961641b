/** Runs the programs in add-ons of addon.c, one after the other, with the same arguments: `run-addon.mjs ADDON[,ADDON …] ARGUMENT …`. */
const [files, ...args] = process.argv.slice(2)
const addons = files.split(',').map((file) => {
  const module = { exports: {} }
  process.dlopen(module, file)
  return [file, module.exports]
})
for (const [file, { run }] of addons) process.exitCode ||= run([file, ...args])

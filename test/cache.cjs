const { createHash } = require('node:crypto')
const { chmodSync, lstatSync, mkdirSync, symlinkSync } = require('node:fs')
const { tmpdir, userInfo } = require('node:os')
const { join } = require('node:path')

/** LD_PRELOAD takes no path with these. */
const isPlain = (path) => !/[\s:;$]/.test(path)

/** The temporary folder, of which LD_PRELOAD takes paths: for libraries that tests preload. */
exports.plainTmpdir = () => (isPlain(tmpdir()) ? tmpdir() : '/tmp')

/**
 * The path of a folder for what tests and scripts keep from run to run: in the temporary folder, for each user another. A folder that all
 * users shared would belong to the first one, and fail for all others. Libraries in it can be preloaded.
 */
exports.cacheFolder = (name) => {
  const uid = process.getuid?.() ?? userInfo().username
  const all = join(exports.plainTmpdir(), `ggml2perfetto-tests-${uid}`)
  exports.makeForAll(all)
  const stats = lstatSync(all)
  if (!stats.isDirectory() || (process.getuid && stats.uid !== uid))
    throw new Error(`${all} is not a folder of this user: set TMPDIR to a folder of yours`)
  return join(all, name)
}

/** Makes a folder that all users may read, whatever the umask is: tests run programs as other users, too. */
exports.makeForAll = (folder) => {
  if (mkdirSync(folder, { recursive: true })) chmodSync(folder, 0o755)
}

/** A path of a folder that LD_PRELOAD takes: its own, else that of a link to it. */
exports.plainPath = (folder) => {
  if (isPlain(folder)) return folder
  const links = exports.cacheFolder('links')
  exports.makeForAll(links)
  const link = join(links, createHash('sha256').update(folder).digest('hex').slice(0, 16))
  try {
    symlinkSync(folder, link)
  } catch (error) {
    if (error.code !== 'EEXIST') throw error
  }
  return link
}

const { lstatSync, mkdirSync } = require('node:fs')
const { tmpdir, userInfo } = require('node:os')
const { join } = require('node:path')

/**
 * The path of a folder for what tests and scripts keep from run to run: in the temporary folder, for each user another. A folder that all
 * users shared would belong to the first one, and fail for all others.
 */
exports.cacheFolder = (name) => {
  const uid = process.getuid?.() ?? userInfo().username
  const all = join(tmpdir(), `ggml2perfetto-tests-${uid}`)
  mkdirSync(all, { recursive: true })
  const stats = lstatSync(all)
  if (!stats.isDirectory() || (process.getuid && stats.uid !== uid))
    throw new Error(`${all} is not a folder of this user: set TMPDIR to a folder of yours`)
  return join(all, name)
}

/** Imports of .sql and .textproto files are their texts, as in tsup.config.ts. */
module.exports = { process: (text) => ({ code: `export default ${JSON.stringify(text)}` }) }

import fc from '../node_modules/fast-check/lib/fast-check.js'

/** What tests get as fast-check: properties are tried with the same cases each time; `FC_SEED=$RANDOM npm run jest` tries others. */
fc.configureGlobal({ seed: Number(process.env['FC_SEED'] ?? 1) })

export * from '../node_modules/fast-check/lib/fast-check.js'
export default fc

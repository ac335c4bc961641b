import fc from 'fast-check'

/** Properties are tried with the same cases each time; `FC_SEED=$RANDOM npm run jest` tries others. */
fc.configureGlobal({ seed: Number(process.env['FC_SEED'] ?? 1) })

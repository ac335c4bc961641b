import { modelIn } from '../bench-folder.mjs'

/** Workers of libgomp sleep at each barrier at once, and are woken by the kernel. */
const sleeping = (id, title, env) => ({
  id,
  title,
  builds: ['openmp'],
  isUndisturbed: true,
  rules: ['passive-waiting'],
  async create({ folder, build, number }) {
    return {
      command: build.decode({ model: await modelIn(folder, 'tinyMoe'), threads: 2, tokens: 60 + 10 * number }),
      env,
    }
  },
})

export const passiveWaiting = sleeping(
  'passive-waiting',
  'OpenMP whose threads sleep at barriers (OMP_WAIT_POLICY=passive)',
  {
    OMP_WAIT_POLICY: 'passive',
  },
)
export const noSpinning = sleeping('no-spinning', 'OpenMP whose threads do not spin at barriers (GOMP_SPINCOUNT=0)', {
  GOMP_SPINCOUNT: '0',
})

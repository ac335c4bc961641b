import { modelIn } from '../bench-folder.mjs'

/** Workers of libgomp sleep at each barrier at once, and are woken by the kernel. */
export const passiveWaiting = {
  id: 'passive-waiting',
  title: 'OpenMP whose threads sleep at barriers (OMP_WAIT_POLICY=passive)',
  builds: ['openmp'],
  isUndisturbed: true,
  isNamed: ({ rule }) => rule === 'passive-waiting',
  async create({ folder, build }) {
    const command = build.decode({ model: await modelIn(folder, 'tinyMoe'), threads: 2, tokens: 60 })
    return { command, env: { OMP_WAIT_POLICY: 'passive' } }
  },
}

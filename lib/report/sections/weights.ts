import { weightMemoryText } from '../../analyze/weights/words.ts'
import { count, size } from '../../model/units.ts'
import type { Context } from '../context.ts'
import { type Section, sourceHtml, tableHtml, tableOf } from '../figure.ts'
import { html } from '../html.ts'

/** Which weights of the CPU are repacked, and why others are not. */
export function weightMemorySection({ analysis: { weight_memory }, stats }: Context): Section | undefined {
  if (!weight_memory) return undefined
  const rows = tableOf(weight_memory.rows, {
    '<weights': ({ roles }) => roles.join(' '),
    '<type': ({ type }) => type,
    tensors: ({ tensors }) => count(tensors),
    size: ({ bytes }) => size(bytes),
    '<in': ({ buffer }) => buffer || 'an unknown buffer',
    '<why': weightMemoryText,
  })
  return {
    id: 'weight-memory',
    title: 'Memory of weights on the CPU',
    content: [
      html`<p>Memory that repacks: ${weight_memory.repacking.join(', ') || 'the program asked for none'}.</p>`,
      tableHtml(rows, 'Weights of the CPU by the memory that they are in'),
      sourceHtml(`${stats('--json')} (weight_memory)`),
    ],
  }
}

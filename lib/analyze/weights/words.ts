import type { RefusingMemory, WeightMemory } from './figures.ts'

/** Why weights are in this memory, in words. */
export function weightMemoryText({ reason, detail, op, refused_by, buffer }: WeightMemory): string {
  const refusals = refused_by.map((refusal) => refusalText(refusal, op)).join('; ')
  switch (reason) {
    case 'repacked':
      return refusals ? `repacked in ${buffer}: ${refusals}` : `repacked in ${buffer}`
    case 'refused':
      return `not repacked: ${refusals}`
    case 'taken-before':
      return `not repacked: ${detail} took them, which the program asks for before`
    case 'not-asked':
      return `not repacked: the program did not ask for such memory${detail ? ` (${detail})` : ''}`
    case 'override':
      return `not repacked: ${detail} places them`
    case 'unknown':
      return 'not repacked: reason unknown'
  }
}

const refusalText = ({ memory, decided }: RefusingMemory, op: string) =>
  decided === null ? `${memory} refused them for ${op}` : `${memory} has no layout for ${decided}`

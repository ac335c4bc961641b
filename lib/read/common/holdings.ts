/** What an input holds, in words: `3689 kernels, 1 memory copy`; nothing of what it has none of. Nouns are in the singular. */
export function holdingsOf(counts: readonly (readonly [count: number, noun: string])[]): string {
  return counts
    .filter(([count]) => count > 0)
    .map(([count, noun]) => `${count} ${count === 1 ? noun : pluralOf(noun)}`)
    .join(', ')
}

/** `copy` becomes `copies`. */
function pluralOf(noun: string): string {
  return `${noun.replace(/y$/, 'ie')}s`
}

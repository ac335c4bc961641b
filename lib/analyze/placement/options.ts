/** Options of llama.cpp's programs that place layers, weights, the KV cache or attention; with a value, and without. */
const VALUED = [
  ...['-ngl', '--gpu-layers', '--n-gpu-layers', '-ot', '--override-tensor', '-ncmoe', '--n-cpu-moe', '-sm'],
  ...['--split-mode', '-ts', '--tensor-split', '-mg', '--main-gpu', '-dev', '--device', '-fa', '--flash-attn'],
  ...['-ctk', '--cache-type-k', '-ctv', '--cache-type-v', '-ub', '--ubatch-size', '-nkvo', '-nopo', '--fit'],
]
const PLAIN = ['-cmoe', '--cpu-moe', '-nkvo', '--no-kv-offload', '--no-op-offload', '--no-repack', '-nr', '--no-host']

/** Programs of llama.cpp whose plain options take a value: `llama-bench -nkvo 0,1`. */
const isValue = (word: string | undefined) => word !== undefined && !/^-(?!\d)/.test(word)

/** Those of a command line, each with its value: `-ngl 30`. Recorded command lines have lost the borders of their words. */
export function placingOptions(command: string): string[] {
  const words = command.split(/\s+/)
  return words.flatMap((word, i) => {
    const [name] = word.split('=')
    const isValued = VALUED.includes(name!)
    if (!isValued && !PLAIN.includes(name!)) return []
    const value = isValued && !word.includes('=') && isValue(words[i + 1]) ? [words[i + 1]!] : []
    return [[word, ...value].join(' ')]
  })
}

/** The number of layers that a program asked a GPU for; 0 also where it asked for no device; undefined: by default, or `auto` or `all`. */
export function askedLayers(options: readonly string[]): number | undefined {
  if (options.some((option) => /^(?:-dev|--device)[ =]none$/.test(option))) return 0
  const texts = options.flatMap((option) => /^(?:-ngl|--gpu-layers|--n-gpu-layers)[ =](\d+)$/.exec(option)?.[1] ?? [])
  return texts.length > 0 ? Number(texts.at(-1)) : undefined
}

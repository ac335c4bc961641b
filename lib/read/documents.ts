/** Is this the beginning of an Analysis, as `ggml2perfetto stats --json` or other tools that sort keys write it? It is no log. */
export function isAnalysis(head: Uint8Array): boolean {
  const text = new TextDecoder('latin1').decode(head)
  return /^\s*\{\s*("call_time"\s*:\s*\[|"schema"\s*:\s*"ggml2perfetto\.analysis\/)/.test(text)
}

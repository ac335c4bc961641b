/** Lines about the server itself, and the attributes of the trace that they give. */
const FACTS: readonly (readonly [form: RegExp, ...keys: string[]])[] = [
  [/\bbuild:? (\d+ \([^()]+\))/, 'llama_cpp'],
  [/\bverbosity = (\d+) \(/, 'verbosity'],
  [/\bloading model '?([^'\n]+)/, 'model'],
  [/\bloading draft model '([^']+)'/, 'draft_model'],
  [/\bn_threads = (\d+) \(n_threads_batch = (\d+)\)/, 'n_threads', 'n_threads_batch'],
  [/\bn_slots = (\d+)(?:, n_ctx_slot = (\d+))?/, 'n_slots', 'n_ctx_slot'],
]
/** Words of which one is in each of these lines. */
const WORDS = ['build', 'verbosity', 'loading', 'n_threads', 'n_slots']

/** Adds the facts that a line contains; the first of each kind stays. */
export function factsIn(message: string, facts: Record<string, string | number>): void {
  if (!WORDS.some((word) => message.includes(word))) return
  for (const [form, ...keys] of FACTS) {
    const found = form.exec(message)
    if (!found) continue
    keys.forEach((key, i) => {
      const value = found[i + 1]
      if (value !== undefined && !(key in facts))
        facts[key] = /^\d+$/.test(value) ? Number(value) : value.slice(0, 1000)
    })
  }
}

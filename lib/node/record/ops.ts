import { closest, UsageError } from '../../errors.ts'
import { OP_TABLES } from '../../model/op-tables.ts'
import { containsText, type Environment, ggmlFiles, type Program } from './program.ts'

/** Functions of the ops UNARY and GLU, whose nodes have these names. */
const FUNCTIONS =
  `ABS SGN NEG STEP TANH ELU RELU SIGMOID GELU GELU_QUICK GELU_ERF SILU HARDSWISH HARDSIGMOID EXP EXPM1 SOFTPLUS
  XIELU FLOOR CEIL ROUND TRUNC REGLU GEGLU SWIGLU SWIGLU_OAI GEGLU_ERF GEGLU_QUICK`.split(/\s+/)

const letters = (op: string) => op.replaceAll('_', '')

/**
 * Throws UsageError for an op that the program's ggml does not have. A newer ggml may have ops that are unknown here: its file
 * contains their names. If that file is not known in advance (it is loaded later, or by a child), only names that differ from
 * known ones by their underscores are refused.
 */
export async function checkOps(ops: readonly string[], program: Program, env: Environment): Promise<void> {
  const known = new Set([...OP_TABLES.flatMap((table) => table.ops), ...FUNCTIONS])
  const unknown = ops.filter((op) => !known.has(op))
  if (unknown.length === 0) return
  const files = await ggmlFiles(program, env)
  for (const op of unknown) {
    const isThere = await Promise.all(files.map((file) => containsText(file, `${op}\0`)))
    if (isThere.includes(true)) continue
    const meant = [...known].find((name) => letters(name) === letters(op)) ?? closest(op, known)
    if (files.length === 0 && (meant === undefined || letters(meant) !== letters(op))) continue
    const whose = files.length > 0 ? 'the ggml that the program is linked with' : 'ggml'
    throw new UsageError(
      `ops: ${op}: ${whose} has no such op${meant === undefined ? '' : `\nhint: did you mean ${meant}?`}`,
    )
  }
}

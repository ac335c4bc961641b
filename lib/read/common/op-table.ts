import type { Names } from '../../model/names.ts'
import { OP_TABLES, type OpTable } from '../../model/op-tables.ts'
import { parseTensorName } from '../../model/tensors.ts'

/**
 * Infers the version whose op numbers a log uses, from pairs that must agree: a tensor's role and the op that uses or
 * computes it. (llama.cpp: src/llama-graph.cpp; a weight `attn_q.weight` can only be a source of a MUL_MAT.)
 */

/** Roles of a first source, and the ops that can take it. */
const BY_FIRST_SOURCE: readonly [RegExp, readonly string[]][] = [
  [/^(attn_(q|k|v|qkv|output)|ffn_(gate|up|down|gate_inp)|output)\.weight$/, ['MUL_MAT']],
  [/^ffn_(gate|up|down|gate_up)_exps\.weight$/, ['MUL_MAT_ID']],
  [/^token_embd\.weight$/, ['GET_ROWS', 'MUL_MAT']],
]

/** Roles of a second source. */
const BY_SECOND_SOURCE: readonly [RegExp, readonly string[]][] = [
  [/_norm\.weight$/, ['MUL']],
  [/^(attn_(q|k|v|qkv|output)|ffn_gate_inp)\.bias$/, ['ADD']],
  [/_exps\.bias$/, ['ADD_ID']],
  [/^inp_pos$/, ['ROPE']],
]

/** Roles of a result. */
const BY_RESULT: readonly [RegExp, readonly string[]][] = [
  [/^(inp_)?embd$/, ['GET_ROWS', 'SCALE', 'MUL']],
  [/^(Q|K|V)cur$/, ['MUL_MAT', 'ADD', 'MUL', 'ROPE', 'RMS_NORM', 'NORM', 'CLAMP', 'SCALE']],
  [/^cache_[kv]$/, ['SET_ROWS', 'CPY', 'ROPE']],
  [/^ffn_moe_argsort$/, ['ARGSORT']],
  [/^ffn_moe_weights_sum_clamped$/, ['CLAMP']],
  [/^ffn_(moe_)?swiglu$/, ['GLU']],
  [/^ffn_moe_(gate|up|down)$/, ['MUL_MAT_ID', 'ADD_ID', 'MUL']],
  [/^ffn_moe_logits$/, ['MUL_MAT', 'ADD']],
  [/^__fattn__$/, ['FLASH_ATTN_EXT']],
  [/^kqv?$/, ['MUL_MAT']],
  [/^result_output$/, ['MUL_MAT', 'ADD', 'SCALE', 'MUL', 'DIV', 'UNARY']],
]

/** One use of an op number. Names are as logged; sources are empty texts where the log has none. */
export interface OpUse {
  readonly op: number
  readonly result: string
  readonly sources: readonly string[]
}

/** Names of one log's op numbers. */
export interface OpNames {
  /** Names id of the op's name; a number without a name becomes `op <number>`. */
  name(op: number): number
  /** Has this number a name? */
  knows(op: number): boolean
  /** True: the table is inferred, not given. */
  readonly inferred: boolean
  /** For the trace's attributes: the table, and how it was chosen. */
  readonly about: string
  /** Set when several tables, or none, agree with the log. */
  readonly problem: string | undefined
}

/** Names by a table that the user chose; a problem where the log contradicts it. */
export function givenOpNames(table: OpTable, uses: readonly OpUse[], names: Names): OpNames {
  const evidence = evidenceOf(uses)
  const against = evidence.length - countAgreements(table, evidence)
  const contradicts = against > Math.max(1, evidence.length * CONTRADICTIONS_MAX)
  const problem = `${against} of ${evidence.length} uses of named tensors contradict ${table.about}`
  return opNames([table], names, false, `${table.about}, as given`, contradicts ? problem : undefined)
}

/** Share of the pairs that may contradict a table, and one pair always: a damaged record or a renamed tensor is no proof. */
const CONTRADICTIONS_MAX = 0.1

/** Names by the table that agrees best; where several tables agree equally, only numbers with the same name in all. */
export function inferOpNames(uses: readonly OpUse[], names: Names): OpNames {
  const evidence = evidenceOf(uses)
  const agreements = OP_TABLES.map((table) => countAgreements(table, evidence))
  const best = Math.max(...agreements)
  const tables = OP_TABLES.filter((_, i) => agreements[i] === best)
  const hint = `use --op-table with one of ${OP_TABLES.map((table) => table.name).join(', ')}, or a file`
  const contradictions = evidence.length - best
  if (contradictions > Math.max(1, evidence.length * CONTRADICTIONS_MAX) || (best === 0 && contradictions > 0)) {
    return opNames([], names, true, 'none fits', `no known op table fits how the numbers are used; ${hint}`)
  }
  const about = tables.map((table) => table.about).join(' or ')
  const alike = uses.every(({ op }) => tables.every((table) => table.ops[op] === tables[0]!.ops[op]))
  const problem = alike
    ? undefined
    : `several op tables fit (${about}): ops that they number differently stay numbers; ${hint}`
  return opNames(tables, names, true, `${about}, inferred from ${evidence.length} uses of named tensors`, problem)
}

interface Evidence {
  readonly op: number
  readonly allowed: readonly (readonly string[])[]
}

function evidenceOf(uses: readonly OpUse[]): Evidence[] {
  return uses.map((use) => ({ op: use.op, allowed: allowedOps(use) })).filter(({ allowed }) => allowed.length > 0)
}

function countAgreements(table: OpTable, evidence: readonly Evidence[]): number {
  return evidence.filter(({ op, allowed }) => allowed.every((ops) => ops.includes(table.ops[op] ?? ''))).length
}

/** The ops that each matching rule allows; all rules must allow the op. */
function allowedOps(use: OpUse): (readonly string[])[] {
  const rules: (readonly string[])[] = []
  const apply = (table: typeof BY_RESULT, name: string | undefined) => {
    if (!name) return
    const role = parseTensorName(name).role
    for (const [pattern, ops] of table) if (pattern.test(role)) rules.push(ops)
  }
  apply(BY_RESULT, use.result)
  apply(BY_FIRST_SOURCE, use.sources[0])
  apply(BY_SECOND_SOURCE, use.sources[1])
  return rules
}

function opNames(
  tables: readonly OpTable[],
  names: Names,
  inferred: boolean,
  about: string,
  problem: string | undefined,
): OpNames {
  const nameOf = (op: number): string | undefined => {
    const name = tables[0]?.ops[op]
    return tables.every((other) => other.ops[op] === name) ? name : undefined
  }
  return {
    name: (op) => names.id(nameOf(op) ?? `op ${op}`),
    knows: (op) => nameOf(op) !== undefined,
    inferred,
    about,
    problem,
  }
}

import { blockOf, type ModelBlock } from '../../model/blocks.ts'
import { putAt } from '../../model/by-id.ts'
import type { TensorEvent } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'
import { parseTensorName } from '../../model/tensors.ts'

/** Roles that are summed separately: models have some 20 to 60. */
export const ROLES_MAX = 256
/** The number of all roles beyond them. */
export const OTHER_ROLES = 2
/** The first number of a role. */
export const FIRST_ROLE = 3

/** Operators of one role and op, in all layers. */
export interface RoleOf {
  readonly role: string
  /** Of fused nodes, their ops joined by `+`. */
  readonly op: string
  readonly block: ModelBlock
}

const OTHERS: RoleOf = { role: '', op: '', block: 'other' }

/** Small numbers of roles. */
export class RoleTable {
  readonly list: RoleOf[] = []
  private readonly byKey = new Map<string, number>()
  /** By first and last tensor of a step. */
  private readonly byTensor: number[] = []

  constructor(
    private readonly tensors: readonly TensorEvent[],
    private readonly names: Names,
  ) {}

  /** The number of the role of a node, or of fused ones from the first to the last. */
  of(tensor: number, last: number): number {
    const known = this.byTensor[tensor]
    return known === undefined || known < 0 ? this.find(tensor, last) : known
  }

  /** The role of a number from {@link of}; that of all further ones has no name. */
  role(number: number): RoleOf {
    return this.list[number - FIRST_ROLE] ?? OTHERS
  }

  private find(tensor: number, last: number): number {
    const { names, list, byKey } = this
    const [first, result] = [this.tensors[tensor]!, this.tensors[last]!]
    const op = (tensor === last ? [first] : [first, result]).map((node) => names.text(node.op)).join('+')
    const { role } = parseTensorName(names.text(result.name))
    const key = `${op} ${role}`
    let number = byKey.get(key)
    if (number === undefined) {
      number = list.length < ROLES_MAX ? FIRST_ROLE + list.length : OTHER_ROLES
      if (number !== OTHER_ROLES) list.push({ role, op, block: blockOf(role, names.text(first.op)) })
      byKey.set(key, number)
    }
    putAt(this.byTensor, tensor, number, -1)
    return number
  }
}

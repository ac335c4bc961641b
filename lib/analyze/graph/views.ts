import { putAt } from '../../model/by-id.ts'
import type { TensorEvent } from '../../model/events.ts'

/** Ops that compute nothing: their result is a view of their first source (ggml_is_noop). */
const VIEW_OPS: ReadonlySet<string> = new Set(['VIEW', 'RESHAPE', 'PERMUTE', 'TRANSPOSE'])
/** Does an op compute nothing? `op`: without `GGML_OP_`. */
export const isView = (op: string): boolean => VIEW_OPS.has(op)

/** Limits damaged logs: ggml resolves views of views itself. */
const DEPTH_MAX = 64

/**
 * Finds the tensor that owns the memory of a tensor: itself, or the one it is a view of. Results of ops that write into
 * another tensor (SET_ROWS, CPY, ggml's `_inplace` functions) are views, too; results that ggml's allocator places in the
 * memory of a source are not.
 */
export class Views {
  private readonly roots: (number | undefined)[] = []

  /** `tensors` by id, `opOf` the op's name without `GGML_OP_`. */
  constructor(
    private readonly tensors: readonly TensorEvent[],
    private readonly opOf: (tensor: TensorEvent) => string,
  ) {}

  /** Id of the tensor that owns the memory of this one. */
  root(id: number): number {
    const known = this.roots[id]
    if (known !== undefined) return known
    let root = id
    for (let depth = 0; depth < DEPTH_MAX; depth++) {
      const base = this.base(this.tensors[root])
      if (base === undefined || base === root) break
      root = base
    }
    putAt(this.roots, id, root, undefined)
    return root
  }

  private base(tensor: TensorEvent | undefined): number | undefined {
    if (!tensor) return undefined
    return tensor.viewOf ?? (VIEW_OPS.has(this.opOf(tensor)) ? tensor.sources[0] : undefined)
  }
}

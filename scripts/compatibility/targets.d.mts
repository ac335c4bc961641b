/** A row of docs/reference/compatibility.md. */
export interface Target {
  /** The table's first cell. */
  readonly name: string
  readonly kind: 'npm' | 'debian' | 'alone' | 'cuda' | 'backend' | 'hip' | 'none'
  readonly from: string
  /** CI runs it. */
  readonly quick: boolean
}

export const targets: readonly Target[]

import { getOrMake } from '../../model/default-map.ts'
import type { Names } from '../../model/names.ts'

/**
 * Names of NVTX ranges with their domains: `TSL:XlaCompile`; without one in the default domain. PyTorch's emit_nvtx writes a number into
 * each name (`aten::mm, op_id = 5`, `aten::mm, seq = 7, sizes = […]`), which is left out.
 */
export class NvtxLabels {
  private readonly known = new Map<number, number>()

  constructor(private readonly names: Names) {}

  /** Id of the name of a range. */
  of(domain: number, message: number): number {
    const key = domain * 2 ** 26 + message
    return getOrMake(this.known, key, () => {
      const prefix = this.names.text(domain)
      const text = this.names.text(message).replace(/, (?:op_id|seq) = \d.*$/s, '')
      return this.names.id(prefix === '' ? text : `${prefix}:${text}`)
    })
  }
}

import { firstIndex } from '../../bytes/search.ts'
import type { SequenceSpan } from '../call-events.ts'
import type { OpenRequest } from './open-request.ts'

/** Whose outputs the places of the last call's batch are. */
export class OutputOwners {
  /** Places of the batch after each span. */
  private ends: number[] = []
  private owners: (OpenRequest | undefined)[] = []
  /** Requests that sample from the outputs of another one, the same prompt's. */
  private sharing: OpenRequest[] = []
  private turn = 0
  private isAccepted = false

  /** A call began with these spans. */
  call(spans: readonly SequenceSpan[], ownerOf: (sequence: number) => OpenRequest | undefined): void {
    let place = 0
    this.ends = spans.map(({ tokens }) => (place += tokens))
    this.owners = spans.map(({ sequence }) => ownerOf(sequence))
    this.sharing = []
    this.turn = 0
    this.isAccepted = false
  }

  /** A sequence with the prompt of another one was copied from it: both sample from the same output, in the order of their slots. */
  share(request: OpenRequest, child: OpenRequest): void {
    if (this.sharing.length === 0) this.sharing.push(request)
    this.sharing.push(child)
    this.sharing.sort((a, b) => a.slot - b.slot)
  }

  /** Does a request have tokens in the call? */
  has(request: OpenRequest): boolean {
    return this.owners.includes(request)
  }

  /** A sampled token was accepted: the next sampler works on another one. */
  accepted(): void {
    this.isAccepted = true
  }

  /** The request of the output in a place of the batch; -1: of the last place. */
  of(output: number): OpenRequest | undefined {
    const { ends, owners } = this
    const at = output < 0 ? (owners.length === 1 ? 0 : -1) : firstIndex(0, ends.length, (i) => ends[i]! > output)
    const owner = owners[at]
    if (!owner || !this.sharing.includes(owner)) return owner
    if (this.isAccepted) this.turn++
    this.isAccepted = false
    return this.sharing[Math.min(this.turn, this.sharing.length - 1)]
  }
}

import { UsageError } from '../../errors.ts'
import type { RpcFigures } from '../rpc/figures.ts'
import type { Summary } from '../summary/figures.ts'

interface ReadLog {
  readonly name: string
  readonly summary: Summary
}

/** Does the log contain a call of the model? */
export const hasCalls = ({ calls }: Summary): boolean => calls.failed > 0 || Object.keys(calls.by_phase).length > 0

/** Is it the log of a server of ggml-rpc: of a second process of a run, whose model another one calls? */
export const isOfServer = (log: ReadLog & { readonly figures: { readonly rpc: RpcFigures | null } }): boolean =>
  !hasCalls(log.summary) && (log.figures.rpc?.peers.some(({ side }) => side === 'server') ?? false)

/** The log that has the operators of the run, or its calls; without any, the first one of which something is drawn. */
export function mainLog<T extends Pick<ReadLog, 'summary'>>(logs: readonly T[]): T {
  return (
    logs.find(({ summary }) => summary.operators > 0) ??
    logs.find(({ summary }) => hasCalls(summary)) ??
    logs.find(({ summary }) => summary.drawn > 0) ??
    logs[0]!
  )
}

/**
 * Throws UsageError for logs of several processes or runs: an Analysis and tables are of one. One log may contain its operators, another one
 * its calls.
 */
export function refuseSeveral(logs: readonly ReadLog[], hint = 'give each of them alone'): void {
  const kinds = [
    { what: 'operators', has: ({ summary }: ReadLog) => summary.operators > 0 },
    { what: 'calls', has: ({ summary }: ReadLog) => hasCalls(summary) },
  ]
  for (const { what, has } of kinds) {
    const [first, second] = logs.filter(has)
    if (!first || !second) continue
    const both = `${first.name} and ${second.name} both contain ${what}`
    if (first.name === second.name)
      throw new UsageError(
        `${first.name}: two inputs of this name contain ${what}\nhint: if it is given twice, give it once`,
      )
    throw new UsageError(`${both}: they are of two processes or runs\nhint: ${hint}`)
  }
}

/** See long-log.mjs. */
export const calls: number
export const perRound: number
export function longLog(
  rounds: number,
  slow?: { readonly round: number; readonly ns: number },
): AsyncGenerator<Uint8Array, void>

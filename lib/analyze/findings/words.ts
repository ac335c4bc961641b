const DURATIONS: readonly (readonly [number, string])[] = [
  [1e9, 's'],
  [1e6, 'ms'],
  [1e3, 'µs'],
  [1, 'ns'],
]

/** `26 ms`, in two digits: sentences are read, figures are in the evidence. */
export function time(ns: number): string {
  const [scale, unit] = DURATIONS.find(([scale]) => Math.abs(ns) >= scale) ?? [1, 'ns']
  return `${number(ns / scale)} ${unit}`
}

/** `11 %`, `3.4 %` */
export function percent(share: number): string {
  return `${number(100 * share)} %`
}

/** `9`, `2.4`, `1370`: two digits, but all those of whole numbers. */
export function number(value: number): string {
  return Math.abs(value) >= 10 ? String(Math.round(value)) : String(Number(value.toPrecision(2)))
}

/** `a 9 %, b 2 %`: the largest shares, at most three. */
export function shares(named: readonly (readonly [name: string, share: number])[]): string {
  return named
    .toSorted((a, b) => b[1] - a[1])
    .slice(0, 3)
    .filter(([, share]) => share >= 0.005)
    .map(([name, share]) => `${name} ${percent(share)}`)
    .join(', ')
}

/** log Γ(x) for x ≥ 0.5: Stirling's series (Abramowitz & Stegun 6.1.40), after shifting x to at least 10. */
function logGamma(x: number): number {
  let [z, shift] = [x, 0]
  for (; z < 10; z++) shift += Math.log(z)
  const r = 1 / (z * z)
  const series = (1 / 12 - r * (1 / 360 - r * (1 / 1260 - r * (1 / 1680 - r / 1188)))) / z
  return (z - 0.5) * Math.log(z) - z + Math.log(2 * Math.PI) / 2 + series - shift
}

/** The regularised incomplete beta function, by its continued fraction (Abramowitz & Stegun 26.5.8, modified Lentz). */
function incompleteBeta(x: number, a: number, b: number): number {
  if (x <= 0) return 0
  if (x >= 1) return 1
  if (x > (a + 1) / (a + b + 2)) return 1 - incompleteBeta(1 - x, b, a)
  const front = Math.exp(a * Math.log(x) + b * Math.log1p(-x) + logGamma(a + b) - logGamma(a) - logGamma(b)) / a
  let [c, d] = [1, 1 / nonZero(1 - ((a + b) * x) / (a + 1))]
  let fraction = d
  for (let m = 1; m < 500; m++) {
    for (const term of [
      (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m)),
      (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1)),
    ]) {
      d = 1 / nonZero(1 + term * d)
      c = nonZero(1 + term / c)
      fraction *= c * d
    }
    if (Math.abs(c * d - 1) < 1e-15) break
  }
  return front * fraction
}

const nonZero = (x: number) => (Math.abs(x) < 1e-300 ? 1e-300 : x)

/** The probability that |t| is larger than this, for Student's t with `df` degrees of freedom (any number above 0). */
export function studentTail(t: number, df: number): number {
  return incompleteBeta(df / (df + t * t), df / 2, 0.5)
}

/** The t that |t| exceeds with probability `tail` (0 < tail < 1), by bisection. */
export function studentQuantile(tail: number, df: number): number {
  let [from, to] = [0, 1]
  while (studentTail(to, df) > tail && to < 1e300) to *= 2
  for (let i = 0; i < 200; i++) {
    const middle = (from + to) / 2
    if (middle === from || middle === to) break
    if (studentTail(middle, df) > tail) from = middle
    else to = middle
  }
  return to
}

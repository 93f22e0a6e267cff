/** The 97.5th percentile of the normal distribution. */
const z = 1.959963984540054;

/** Returns the Wilson interval of a share, with 95 % confidence. Source: E. B. Wilson, Probable Inference, JASA 22
 * (1927). */
export function wilson(passed: number, total: number): { readonly low: number; readonly high: number } {
  if (total === 0) return { low: 0, high: 1 };
  const share = passed / total;
  const scale = 1 + z ** 2 / total;
  const middle = share + z ** 2 / (2 * total);
  const reach = z * Math.sqrt((share * (1 - share)) / total + z ** 2 / (4 * total ** 2));
  return {
    low: passed === 0 ? 0 : (middle - reach) / scale,
    high: passed === total ? 1 : (middle + reach) / scale,
  };
}

/** Returns the exact two-sided p value of McNemar's test. `onlyFirst`, `onlySecond`: the pairs of which only that one
 * passed. */
export function mcnemar(onlyFirst: number, onlySecond: number): number {
  const pairs = onlyFirst + onlySecond;
  const fewer = Math.min(onlyFirst, onlySecond);
  // From about 1,075 pairs on, the first term is too small for a number: logarithms are exact enough then.
  const isLong = pairs > 1000;
  let term = isLong ? pairs * Math.log(0.5) : 0.5 ** pairs;
  let tail = isLong ? Math.exp(term) : term;
  for (let chosen = 1; chosen <= fewer; chosen++) {
    const factor = (pairs - chosen + 1) / chosen;
    term = isLong ? term + Math.log(factor) : term * factor;
    tail += isLong ? Math.exp(term) : term;
  }
  return Math.min(1, 2 * tail);
}

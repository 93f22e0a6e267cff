/** Returns how many cases a property is tried with: a tenth of `all`, at least 10, or as many times `all` as the
 * variable FC_SCALE says (1: all of them, as `npm run t:properties` does). */
export function propertyRuns(all: number): number {
  const scale = Number(process.env['FC_SCALE'] ?? 0.1);
  return Math.max(Math.min(all, 10), Math.round(all * scale));
}

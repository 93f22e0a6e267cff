import { runRaces } from './race.js';

// `npm run t:races [attempts]`: a link is exchanged as fast as possible while file tools and searches work on it.
// Prints a line for each kind; fails where one escaped.
const total = Number(process.argv[2] ?? 24_000);
const results = await runRaces(Math.ceil(total / 12));
for (const { kind, attempts, done, refused, swaps, escapes } of results) {
  console.log(
    `${kind.padEnd(40)} ${attempts} attempts, ${swaps} swaps meanwhile, ${done} inside, ${refused} refused, ${escapes} escaped`,
  );
}
const escapes = results.reduce((sum, result) => sum + result.escapes, 0);
console.log(`races: ${results.reduce((sum, result) => sum + result.attempts, 0)} attempts, ${escapes} escapes`);
process.exitCode = escapes === 0 ? 0 : 1;

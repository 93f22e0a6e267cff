import { mutatedCommand, randomNumbers } from './command-grammar.js';
import { isSurprise, traceLines, type TracedLine } from './surprises.js';
import { canTrace } from './traced.js';

// `npm run t:commands [count] [seed]`: command lines are classified, then run in a sandbox under a trace of what they
// execute. A program that ran without being on the classifier's list is a surprise, unless the line was called
// dangerous: then somebody is asked. Prints the counts and each surprise; fails where there is one.
const count = Number(process.argv[2] ?? 10_000);
const seed = Number(process.argv[3] ?? 20_261_121);
const batch = 500;

function main(): number {
  if (!canTrace()) {
    console.log(`commands: skipped ${count}, bubblewrap or strace is not here or does not work`);
    return 0;
  }
  const random = randomNumbers(seed);
  const lines: TracedLine[] = [];
  for (let done = 0; done < count; done += batch)
    lines.push(...traceLines(Array.from({ length: Math.min(batch, count - done) }, () => mutatedCommand(random))));
  const unlisted = lines.filter((line) => line.unlisted.length > 0);
  const surprises = lines.filter(isSurprise);
  for (const { command, unlisted: programs, listed } of surprises)
    console.log(JSON.stringify({ surprise: programs, command, listed }));
  const dangerous = lines.filter((line) => line.isDangerous).length;
  const executed = lines.reduce((sum, line) => sum + line.executed, 0);
  console.log(
    `commands: ${lines.length} run (${dangerous} dangerous), ${executed} programs executed, ${unlisted.length - surprises.length} dangerous lines ran an unlisted program, ${surprises.length} surprises`,
  );
  return surprises.length === 0 ? 0 : 1;
}

process.exitCode = main();

import { parse } from 'unbash';
import { classifyShell } from '../../../src/policy/shell/shell-classify.js';
import { context } from '../../policy/judging.js';
import { mutatedCommand, randomNumbers } from './command-grammar.js';
import { canTrace, tracePrograms } from './traced.js';

// `npm run t:commands [count] [seed]`: command lines are classified, then run in a sandbox under a trace of what they execute. A program that ran without being on the
// classifier's list is a surprise, unless the line was called dangerous: then somebody is asked. Prints the counts and each surprise; fails where there is one.
const count = Number(process.argv[2] ?? 10_000);
const seed = Number(process.argv[3] ?? 20_261_121);
const batch = 500;

interface Surprise { readonly command: string; readonly risk: string; readonly unlisted: readonly string[]; readonly listed: readonly string[] }

function judged(command: string): { readonly risk: string; readonly listed: ReadonlySet<string> } {
  const { risk, commands } = classifyShell(command, context, parse);
  return { risk, listed: new Set(commands.map(({ argv }) => (argv[0] ?? '').replace(/^.*\//, ''))) };
}

function compare(command: string, ran: ReadonlySet<string>): Surprise {
  const { risk, listed } = judged(command);
  return { command, risk, listed: [...listed], unlisted: [...ran].filter((program) => !listed.has(program)) };
}

function main(): number {
  if (!canTrace) {
    console.log(`commands: skipped ${count}, bubblewrap or strace is not here`);
    return 0;
  }
  const random = randomNumbers(seed);
  const compared: Surprise[] = [];
  let executed = 0;
  for (let done = 0; done < count; done += batch) {
    const commands = Array.from({ length: Math.min(batch, count - done) }, () => mutatedCommand(random));
    tracePrograms(commands).forEach((ran, index) => {
      executed += ran.size;
      compared.push(compare(commands[index] ?? '', ran));
    });
  }
  const unlisted = compared.filter((item) => item.unlisted.length > 0);
  const surprises = unlisted.filter((item) => item.risk !== 'dangerous');
  for (const { command, risk, unlisted: programs, listed } of surprises) console.log(JSON.stringify({ surprise: programs, risk, command, listed }));
  const risks = ['read-only', 'mutating', 'dangerous'].map((risk) => `${compared.filter((item) => item.risk === risk).length} ${risk}`).join(', ');
  console.log(`commands: ${compared.length} run (${risks}), ${executed} programs executed, ${unlisted.length - surprises.length} dangerous lines ran an unlisted program, ${surprises.length} surprises`);
  return surprises.length === 0 ? 0 : 1;
}

process.exitCode = main();

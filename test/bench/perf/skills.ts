// npm run t:skills -- [rounds]      finding skills: 50 of them, and 2,000 folders; the first time and again
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openKeptHeads } from '../../../src/kernel/config/kept-heads.js';
import { skillsIn } from '../../../src/features/prompts-and-skills/read-skills.js';
import { skillsBlock } from '../../../src/features/prompts-and-skills/use-skill.js';

const rounds = Number(process.argv[2] ?? 20);
const folder = mkdtempSync(join(tmpdir(), 'agent-skills-'));

function skillAt(path: string, name: string): void {
  mkdirSync(join(path, 'references'), { recursive: true });
  const head = `name: ${name}\ndescription: Does ${name}: and more of it. Use when the user asks for ${name}.\nlicense: MIT`;
  writeFileSync(join(path, 'SKILL.md'), `---\n${head}\n---\n${'Do it well.\n'.repeat(200)}`);
}
for (let n = 0; n < 50; n++) skillAt(join(folder, 'fifty', `skill-${n}`), `skill-${n}`);
for (let n = 0; n < 1900; n++)
  mkdirSync(join(folder, 'many', `group-${n % 40}`, `folder-${n}`, ...(n % 3 === 0 ? ['deep'] : [])), {
    recursive: true,
  });
for (let n = 0; n < 50; n++) skillAt(join(folder, 'many', `group-${n % 40}`, `skill-${n}`), `skill-${n}`);

const sizes = [
  { name: '50 skills', below: 'fifty', mostMs: 10 },
  { name: '2,000 folders', below: 'many', mostMs: 50 },
];
let failed = false;
for (const { name, below, mostMs } of sizes) {
  const places = [{ folder: join(folder, below), origin: 'user', root: null }] as const;
  const first: number[] = [];
  const again: number[] = [];
  let found = skillsIn(places);
  for (let round = 0; round < rounds; round++) {
    const heads = openKeptHeads(null);
    for (const times of [first, again]) {
      const started = performance.now();
      found = skillsIn(places, heads);
      times.push(performance.now() - started);
    }
  }
  const least = (times: readonly number[]): number => Math.min(...times);
  const median = (times: readonly number[]): number => times.toSorted((a, b) => a - b)[times.length >> 1] ?? 0;
  console.log(
    `${name.padEnd(14)} ${found.skills.length} found; first least ${least(first).toFixed(1)} ms, median ` +
      `${median(first).toFixed(1)} ms; again least ${least(again).toFixed(1)} ms, median ${median(again).toFixed(1)} ms ` +
      `(at most ${mostMs}); catalogue ${skillsBlock(found, null).text.length} characters`,
  );
  failed ||= least(first) > mostMs || found.skills.length !== 50;
}
rmSync(folder, { recursive: true, force: true });
process.exitCode = failed ? 1 : 0;

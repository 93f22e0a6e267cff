// npm run t:library -- [rounds]      what `import 'agent-shell'` and the first agent cost, in processes of their own
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

declare const AGENT_ROOT: string;

const mostImportMs = 60;
const rounds = Number(process.argv[2] ?? 15);
const library = pathToFileURL(join(AGENT_ROOT, 'dist/library.js')).href;
const folder = mkdtempSync(join(tmpdir(), 'agent-library-'));
writeFileSync(join(folder, 'script.json'), '{"turns":[{"text":"Done."}]}');
const source = `
  const handles = () => process.getActiveResourcesInfo().filter((name) => /Time|TCP|Signal|Process|Watch/.test(name)).length;
  const first = performance.now();
  await import('data:text/javascript,export const nothing = 0');
  const nothing = performance.now() - first;
  const before = handles();
  const started = performance.now();
  const { createAgent } = await import(${JSON.stringify(library)});
  const imported = performance.now();
  const left = handles() - before;
  const agent = await createAgent({ cwd: ${JSON.stringify(folder)}, model: 'offline/script.json' });
  const opened = performance.now();
  await agent.createSession().prompt('go');
  const answered = performance.now();
  await agent.close();
  console.log(JSON.stringify([imported - started, opened - imported, answered - opened, left, nothing]));
`;

const runs = Array.from({ length: rounds }, () => {
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', source], {
    encoding: 'utf8',
    env: { ...process.env, AGENT_HOME: folder },
  });
  return JSON.parse(stdout) as readonly [number, number, number, number, number];
});
rmSync(folder, { recursive: true, force: true });

const median = (index: 0 | 1 | 2 | 4): number =>
  runs.map((run) => run[index]).toSorted((a, b) => a - b)[rounds >> 1] ?? 0;
const left = Math.max(...runs.map(([, , , count]) => count));
console.log(
  `import ${median(0).toFixed(1)} ms (at most ${mostImportMs}; an empty module before it ${median(4).toFixed(1)}), createAgent ${median(1).toFixed(1)} ms, ` +
    `first answer ${median(2).toFixed(1)} ms; medians of ${rounds}; the import leaves ${left} timers and sockets`,
);
process.exitCode = median(0) <= mostImportMs && left === 0 ? 0 : 1;

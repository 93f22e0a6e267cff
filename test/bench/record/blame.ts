// npm run t:blame      the last part: `agent blame` of a file of 20,000 lines with 500 recorded changes, as a process
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Event, EventDraft } from '../../../src/kernel/core/event.js';
import type { Blob } from '../../../src/kernel/core/store.js';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { unifiedDiff } from '../../../src/kernel/tools/files/atomic-write.js';

declare const AGENT_ROOT: string;

const lineCount = 20_000;
const changeCount = 500;
const rounds = Number(process.argv[2] ?? 5);
const mostMs = 1000;

const place = mkdtempSync(join(tmpdir(), 'agent-blame-'));
const [home, work] = [join(place, 'home'), join(place, 'work')];
const file = join(work, 'large.ts');
const hash = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
const textOf = (all: readonly string[]): Buffer => Buffer.from(all.map((line) => `${line}\n`).join(''));

/** Records a session with as many calls, each of which changes three lines of the file. */
async function record(tool: 'file_edit' | 'bash', id: string): Promise<void> {
  const { store } = await openSqliteStore({ file: join(home, '.agent/agent.db'), now: Date.now });
  const row = { parentId: null, title: null, provider: 'offline', model: 'm', createdAt: 1, updatedAt: 1 };
  await store.createSession({ id, cwd: work, ...row });
  let seq = 0;
  const append = async (draft: EventDraft, blobs: readonly Blob[] = []): Promise<void> => {
    await store.append(id, { seq: ++seq, createdAt: Date.now(), ...draft } satisfies Event, blobs, 'later');
  };
  await append({ kind: 'user', content: 'Change the file', data: null });
  for (let change = 0; change < changeCount; change++) {
    const at = (change * 7919) % lineCount;
    const before = textOf(lines);
    lines.splice(at, 1, `export const changed${change} = 'by ${tool}';`, `// more of ${change}`, '');
    const after = textOf(lines);
    const [one, two] = [hash(before), hash(after)];
    const data = {
      id: `c${change}`,
      type: 'function',
      function: { name: tool, arguments: '{}' },
      response_id: 'r',
    } as const;
    await append({ kind: 'tool_call', content: `${tool}(…)`, data });
    const diff = tool === 'bash' ? undefined : await unifiedDiff('large.ts', before.toString(), after.toString());
    await append(
      {
        kind: 'tool_result',
        content: 'done',
        data: {
          tool_call_id: `c${change}`,
          name: tool,
          output: '{"output":"done"}',
          success: true,
          ...(diff === undefined ? {} : { diff }),
          changes: [{ path: file, what: 'changed', before: one, after: two, captured: true }],
        },
      },
      [
        { sha256: one, bytes: before },
        { sha256: two, bytes: after },
      ],
    );
  }
  await store.close();
}

/** The bar is for calls of file tools: a command has no diff, so that the contents after each one are read. */
function measure(tool: 'file_edit' | 'bash'): boolean {
  const times: number[] = [];
  const env = { PATH: process.env['PATH'], HOME: home, AGENT_HOME: join(home, '.agent') };
  const args = [join(AGENT_ROOT, 'bin/agent.js'), 'blame', 'large.ts', '--json'];
  let found = 0;
  for (let round = 0; round < rounds; round++) {
    const started = performance.now();
    const output = execFileSync(process.execPath, args, { cwd: work, env, encoding: 'utf8', maxBuffer: 1 << 28 });
    times.push(performance.now() - started);
    found = (JSON.parse(output) as { lines: { seq: number | null }[] }).lines.filter(({ seq }) => seq !== null).length;
  }
  const fastest = Math.min(...times);
  const size = (statSync(file).size / 1024).toFixed(0);
  process.stdout.write(
    `${tool}: ${lines.length} lines (${size} KiB), ${changeCount} changes, ${found} lines by calls: ` +
      `${fastest.toFixed(0)} ms, the fastest of ${rounds}${tool === 'bash' ? '' : `, at most ${mostMs}`}\n`,
  );
  return tool === 'bash' || fastest <= mostMs;
}

let lines: string[] = [];
let isFast = true;
for (const tool of ['file_edit', 'bash'] as const) {
  rmSync(home, { recursive: true, force: true });
  for (const folder of [join(home, '.agent'), work]) mkdirSync(folder, { recursive: true });
  lines = Array.from({ length: lineCount }, (_, index) => `export const value${index} = ${index};`);
  writeFileSync(file, textOf(lines));
  rmSync(join(work, '.git'), { recursive: true, force: true });
  for (const args of [
    ['init', '-q'],
    ['add', '-A'],
    ['-c', 'user.name=a', '-c', 'user.email=a@a', 'commit', '-qm', 'First'],
  ])
    execFileSync('git', args, { cwd: work });
  await record(tool, `bench-${tool}`);
  writeFileSync(file, textOf(lines));
  isFast = measure(tool) && isFast;
}
rmSync(place, { recursive: true, force: true });
process.exitCode = isFast ? 0 : 1;

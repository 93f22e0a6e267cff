import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Script {
  readonly name: string;
  readonly turns: readonly object[];
  readonly answer: '--approve-all' | '--deny-all';
  /** What `made.txt` holds afterwards; null for no such file. */
  readonly made: string | null;
  readonly said: string;
}

const call = (name: string, args: object): object => ({ calls: [{ name, arguments: args }] });
const write = call('file_write', { path: 'made.txt', content: 'hello\n' });
const edit = call('file_edit', { path: 'made.txt', old_string: 'hello', new_string: 'good-bye' });
const command = call('bash', { command: 'seq 1 2000; echo done > made.txt' });
export const scripts: readonly Script[] = [
  { name: 'an answer', turns: [{ text: 'Nothing to do.' }], answer: '--deny-all', made: null, said: 'Nothing to do.' },
  {
    name: 'a write, allowed',
    turns: [write, { text: 'Written.' }],
    answer: '--approve-all',
    made: 'hello\n',
    said: 'Written.',
  },
  {
    name: 'a write, denied',
    turns: [write, { text: 'Not written.' }],
    answer: '--deny-all',
    made: null,
    said: 'Not written.',
  },
  {
    name: 'an edit',
    turns: [write, edit, { text: 'Edited.' }],
    answer: '--approve-all',
    made: 'good-bye\n',
    said: 'Edited.',
  },
  {
    name: 'a command',
    turns: [command, { text: 'Counted.' }],
    answer: '--approve-all',
    made: 'done\n',
    said: 'Counted.',
  },
];

/** Where acpx 0.19.1, a client of the Agent Client Protocol, and the Node 22 that it needs are installed. */
export function acpxIn(root: string) {
  const folder = join(root, 'node_modules/.bench/acpx');
  const bin = join(folder, 'node_modules/.bin');
  return { folder, packages: ['acpx@0.19.1', 'node@22'], bin, found: () => existsSync(join(bin, 'acpx')) };
}

/** Lets acpx drive the built program of `root` through a script. */
export function drive(root: string, { turns, answer }: Script) {
  const home = mkdtempSync(join(tmpdir(), 'agent-acpx-'));
  const script = join(home, 'script.json');
  writeFileSync(script, JSON.stringify({ turns }));
  const ours = `${process.execPath} ${join(root, 'bin/agent.js')} -m offline/${script} --approval mutating acp`;
  const { stdout, stderr } = spawnSync(
    'acpx',
    ['--cwd', home, answer, '--format', 'json', '--agent', ours, 'exec', 'go'],
    {
      encoding: 'utf8',
      timeout: 60_000,
      env: { PATH: `${acpxIn(root).bin}:${process.env['PATH'] ?? ''}`, HOME: home },
    },
  );
  const file = join(home, 'made.txt');
  const made = existsSync(file) ? readFileSync(file, 'utf8') : null;
  rmSync(home, { recursive: true, force: true });
  const spoken = [...stdout.matchAll(/"agent_message_chunk","content":\{"type":"text","text":"([^"]*)"/g)];
  return {
    made,
    said: spoken.map(([, text = '']) => text).join(''),
    ended: stdout.includes('"stopReason":"end_turn"'),
    output: stdout + stderr,
    messages: stdout.split('\n').length - 1,
  };
}

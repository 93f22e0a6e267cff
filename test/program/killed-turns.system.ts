import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { agent, lines } from '../e2e/program.js';
import { modelServer, type ModelServer, type Turn } from '../e2e/model-server.js';
import { bash, limitedPlace, rows } from './usage-limits.js';

const fields = ['model: claude-opus-4-5', 'effort: high', 'disallowed-tools: Write', 'allowed-tools: Bash(touch *)'];
const write: Turn = { calls: [{ name: 'file_write', arguments: { path: 'a.txt', content: 'x' } }] };
const stream = ['-p', '--approval', 'mutating', '--output-format', 'stream-json'];

const modelsOf = ({ requests }: ModelServer): readonly unknown[] => requests.map(({ body }) => body['model']);

/** A place with a command, whose turn is killed in its first call. */
async function killed(turns: readonly Turn[]) {
  const server = await modelServer([bash('echo one && sleep 30'), ...turns]);
  const at = limitedPlace(server);
  const commands = join(at.home, '.agent/commands');
  mkdirSync(commands, { recursive: true });
  const file = join(commands, 'deep.md');
  writeFileSync(file, `---\n${fields.join('\n')}\n---\nGo deep.\n`);
  const first = await agent(at, [...stream, '/deep'], {
    onStdout: (text, child) => {
      if (text.includes('"type":"tool_call"')) child.kill('SIGKILL');
    },
  });
  expect(first.signal).toBe('SIGKILL');
  return { at, server, file };
}

const results = (text: string): readonly string[] =>
  lines(text).flatMap((line) => {
    if (line.type !== 'tool_result') return [];
    return [(JSON.parse(String(line['output'])) as { readonly code?: string }).code ?? 'ok'];
  });

const settings = (at: Parameters<typeof rows>[0]): readonly unknown[] =>
  rows(at).flatMap(({ kind, data }) => (kind === 'turn_settings' ? [data?.['state']] : []));

test('a turn of a command that is killed continues with its model, limits and approvals, for one turn', async () => {
  const turns = [write, bash('touch two.txt'), { text: 'Done.' }, write, { text: 'Plain.' }];
  const { at, server } = await killed(turns);
  expect(settings(at)).toEqual(['set']);
  const again = await agent(at, [...stream, '-c', 'continue']);
  expect([again.code, results(again.stdout).slice(-2)]).toEqual([0, ['unknown_tool', 'ok']]);
  expect(existsSync(join(at.work, 'two.txt'))).toBe(true);
  expect(again.stdout).toContain(
    'This message continues the interrupted turn of /deep: uses anthropic/claude-opus-4-5',
  );
  expect(settings(at)).toEqual(['set', 'ended']);
  const plain = await agent(at, [...stream, '-c', 'plain']);
  expect([plain.code, results(plain.stdout)]).toEqual([6, ['permission_denied']]);
  const own = 'claude-sonnet-5';
  expect(modelsOf(server)).toEqual([...Array.from({ length: 4 }, () => 'claude-opus-4-5'), own, own]);
});

test('a killed turn whose command has changed or is gone allows nothing any more', async () => {
  const { at, file } = await killed([bash('touch two.txt'), { text: 'Done.' }]);
  rmSync(file);
  const again = await agent(at, [...stream, '-c', 'continue']);
  expect([again.code, results(again.stdout).slice(-1)]).toEqual([6, ['permission_denied']]);
});

test('another command after a killed turn has its own settings alone', async () => {
  const { at, server } = await killed([write, { text: 'Done.' }]);
  writeFileSync(join(at.home, '.agent/commands/other.md'), '---\nallowed-tools: Write\n---\nOther.\n');
  const again = await agent(at, [...stream, '-c', '/other']);
  expect([again.code, results(again.stdout).slice(-1)]).toEqual([0, ['ok']]);
  expect(modelsOf(server)).toEqual(['claude-opus-4-5', 'claude-sonnet-5', 'claude-sonnet-5']);
  expect(settings(at)).toEqual(['set', 'ended', 'set', 'ended']);
});

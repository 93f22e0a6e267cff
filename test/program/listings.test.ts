import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { agent, place, script } from './inside.js';

/** What differs from run to run, and the width of columns that follows from it. */
function steady(text: string): string {
  return text
    .replaceAll(/\/tmp\/[\w./-]*?agent-e2e-\w+/g, 'PLACE')
    .replaceAll(/\/\S*(?:node_modules|bin)\/\S+/g, 'PROGRAM')
    .replaceAll(/script-\w+/g, 'SCRIPT')
    .replaceAll(/\b[0-9A-HJKMNP-TV-Z]{13}(?:[0-9A-HJKMNP-TV-Z]{13})?\b/g, 'ID')
    .replaceAll(/\b(?=\w*\d)[0-9a-f]{12,64}\b/g, 'HASH')
    .replaceAll(/\d+(?:\.\d+)?/g, 'N')
    .replaceAll(/[ ─]{2,}/g, ' ');
}

const json = (value: unknown): string => JSON.stringify(value);

/** Each line: the words of a command line; `FIRST` is the first session. */
const commands: readonly (readonly string[])[] = [
  ['stats'],
  ['stats', '--here', '--since', '1d'],
  ['stats', '--since', 'yesterday'],
  ['audit'],
  ['audit', '--errors'],
  ['audit', '--tool', 'bash'],
  ['audit', '--csv'],
  ['audit', '--json'],
  ['audit', 'verify'],
  ['audit', 'verify', '--json'],
  ['audit', 'suggest-rules'],
  ['sessions'],
  ['sessions', 'list'],
  ['sessions', 'list', '--json'],
  ['sessions', 'show', 'FIRST'],
  ['sessions', 'show', 'nothing-like-it'],
  ['sessions', 'rename', 'FIRST', 'other', 'name'],
  ['sessions', 'rm', 'nope'],
  ['sessions', 'prune', '--older-than', '1d'],
  ['sessions', 'prune', '--older-than', 'nope'],
  ['sessions', 'export', 'FIRST'],
  ['sessions', 'export', 'FIRST', '--format', 'nope'],
  ['search', 'needle'],
  ['search', 'needle', '--json'],
  ['search', 'nothingatall'],
  ['sql', 'select kind, count(*) as n from events group by kind order by kind'],
  ['sql', 'select kind, seq from events order by session_id, seq limit 2', '--json'],
  ['sql', 'select kind, seq from events order by session_id, seq limit 2', '--csv'],
  ['sql', 'delete from events'],
  ['sql', 'select nothing from nowhere'],
  ['replay', 'FIRST'],
  ['replay', 'FIRST', '--verify'],
  ['undo'],
  ['restore', 'a.md'],
  ['restore', 'a.md@1'],
  ['redact', 'FIRST', '4'],
  ['audit', 'verify'],
  ['sessions', 'show', 'other name', '--as', 'nope'],
  ['tools', 'list'],
  ['tools', 'show', 'bash'],
  ['tools', 'call', 'glob', json({ pattern: '*' })],
  ['tools', 'call', 'glob', json({ patern: '*' })],
  ['tools', 'call', 'nope', '{}'],
  ['tools', 'call', 'execute_command', json({ command: 'echo hi' })],
  ['tools', 'call', 'filesystem', json({ operation: 'list', path: '.' }), '--tools', '+files'],
  ['tools', 'call', 'get_time', '{}'],
  ['tools', 'check', 'get_time', '{}'],
  ['tools', 'show', 'fs_exists', '--json'],
  ['tools', 'show', 'fs_exists'],
  ['tools', 'show', 'nope'],
  ['tools', 'call', 'file_write', json({ path: 'b.md', content: 'b' }), '--approval', 'always'],
  ['tools', 'check', 'bash', json({ command: 'rm -rf x' })],
  ['tools', 'check', 'bash', json({ command: 'ls' })],
  ['config', 'path'],
  ['config', 'get', 'nope'],
  ['config', 'set', 'nope', '1'],
  ['config', 'set', 'max_tool_turns', 'many'],
  ['config', 'set', 'max_tool_turns', '7'],
  ['config', 'get', 'max_tool_turns'],
  ['config', 'check'],
  ['config', 'trust'],
  ['config', 'trust', '--list'],
  ['providers', 'check', 'nope'],
  ['completion', 'nope'],
  ['help', 'stats'],
  ['help', 'nope'],
];

test('what commands say of a record, whole', async () => {
  const at = place({ 'a.md': '# A\nneedle\n' });
  const calls = [
    { name: 'file_read', arguments: { path: 'a.md' } },
    { name: 'file_read', arguments: { path: 'none.md' } },
    { name: 'bash', arguments: { command: 'rm -rf a.md' } },
  ];
  await agent(at, ['-p', '-m', script(at, [{ calls }, { text: 'Done with it.' }]), 'look at it']);
  await agent(at, ['-p', '-m', script(at, [{ text: 'Second.' }]), 'another']);
  const [, first] = JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as { id: string }[];
  const said: string[] = [];
  for (const words of commands) {
    const { code, stdout, stderr } = await agent(
      at,
      words.map((word) => (word === 'FIRST' ? (first?.id ?? '') : word)),
    );
    said.push(`$ agent ${words.join(' ')}\n${steady(stdout + stderr)}[${code}]\n`);
  }
  await expect(said.join('\n')).toMatchFileSnapshot('listings.txt');
});

test('settings, models, providers and the doctor say what they know', async () => {
  const at = place();
  const key = { env: { OPENROUTER_API_KEY: 'or-key-of-a-test' } };
  const models = (await agent(at, ['models'], key)).stdout;
  expect(models).toMatch(/^openai\/gpt-5\.2 +\d+k +\$\S+ in, \$\S+ out per million tokens +table$/m);
  expect(models).toMatch(/^anthropic\/claude-3-7-sonnet .*retired$/m);
  expect((await agent(at, ['models', '--provider', 'deepseek'], key)).stdout).not.toContain('openai/gpt');
  const providers = (await agent(at, ['providers'], key)).stdout;
  expect(providers).toMatch(/^openrouter +openai-chat +OPENROUTER_API_KEY is set/m);
  expect(providers).toMatch(/^openai +openai-responses +OPENAI_API_KEY is not set/m);
  expect(providers).toMatch(/^ollama +openai-chat +no key needed/m);
  const doctor = JSON.parse((await agent(at, ['doctor', '--json'], key)).stdout) as { name: string; status: string }[];
  expect(doctor.filter(({ status }) => status === 'fail')).toEqual([]);
  expect(doctor.find(({ name }) => name === 'keys')).toMatchObject({ status: 'ok' });
  const shown = (await agent(at, ['config', 'show', '--approval', 'never'], key)).stdout;
  expect(shown).toMatch(/approval.*never.*option/);
});

test('a broken settings file is named and nothing else of it is lost', async () => {
  const at = place();
  await agent(at, ['config', 'set', 'max_tool_turns', '7']);
  const file = join(at.home, '.agent', 'config.json');
  const good = readFileSync(file, 'utf8');
  writeFileSync(file, good.replace('7', '"seven"'));
  const { code, stderr } = await agent(at, ['config', 'check']);
  expect([code, stderr]).toEqual([2, expect.stringMatching(/max_tool_turns.*integer.*"seven"/)]);
  const set = await agent(at, ['config', 'set', 'max_tool_turns', '8']);
  expect([set.code, readFileSync(file, 'utf8')]).toEqual([0, good.replace('7', '8')]);
});

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { agent, lines, place, repl, script } from './inside.js';

type Place = ReturnType<typeof place>;

interface Shown {
  readonly kind: string;
  readonly content: string | null;
  readonly data: { readonly arguments?: readonly string[] } | null;
}

async function events(at: Place): Promise<readonly Shown[]> {
  const { stdout } = await agent(at, ['sessions', 'list', '--json']);
  const id = (JSON.parse(stdout) as readonly { readonly id: string }[])[0]?.id ?? '';
  return JSON.parse((await agent(at, ['sessions', 'show', id, '--json'])).stdout) as readonly Shown[];
}

const contents = (all: readonly Shown[], kind: string): readonly (string | null)[] =>
  all.filter((event) => event.kind === kind).map(({ content }) => content);

const reviewer = {
  reviewer: { description: 'Reviews code.', prompt: 'You review code in verse.', tools: ['Read'], color: 'red' },
};
const asksReviewer = [
  { calls: [{ name: 'agent', arguments: { agent: 'reviewer', prompt: 'Review it.', description: 'review' } }] },
  { text: 'Done.' },
];

test('--next sends further prompts in the same session, a result for each', async () => {
  const at = place();
  const model = script(at, [{ text: 'One.' }, { text: 'Two.' }, { text: 'Three.' }]);
  const more = ['--next', 'second', '--next', '/cost', '--next', 'third'];
  const text = await agent(at, ['-p', '-m', model, 'first', ...more, '-o', 'answer.md']);
  expect([text.code, text.stdout]).toEqual([0, expect.stringMatching(/^One\.\nTwo\.\n\| requests[^]*\nThree\.\n$/)]);
  expect(contents(await events(at), 'user')).toEqual(['first', 'second', 'third']);
  const json = await agent(at, ['-p', '-m', model, '--output-format', 'json', 'a', '--next', 'b']);
  expect(lines(json.stdout)).toMatchObject([{ text: 'One.' }, { text: 'Two.' }]);
});

test('a prompt that does not end well is the last one, and its exit code that of the run', async () => {
  const at = place();
  const read = { calls: [{ name: 'file_read', arguments: { path: 'x' } }] };
  const model = script(at, [{ text: 'One.' }, read, read, { text: 'Three.' }]);
  const limited = ['-p', '-m', model, '--max-tool-turns', '1', 'first', '--next', 'second', '--next', 'third'];
  expect((await agent(at, limited)).code).toBe(3);
  expect(contents(await events(at), 'user')).toEqual(['first', 'second']);
  const { code, stdout } = await agent(at, ['-p', '-m', model, 'first', '--next', '/nothing', '--next', 'third']);
  expect([code, stdout]).toEqual([2, '']);
  expect((await agent(at, ['--next', 'x', 'first'], { stdin: '' })).code).not.toBe(0);
  const stream = ['-p', '--input-format', 'stream-json', '--output-format', 'stream-json', '--next', 'x'];
  expect(await agent(at, stream)).toMatchObject({ code: 2, stderr: expect.stringContaining('--next') });
});

test('--agents offers agents for one run, from JSON or a file, and refuses incomplete ones', async () => {
  const at = place();
  const model = script(at, asksReviewer);
  for (const given of [JSON.stringify(reviewer), 'agents.json']) {
    writeFileSync(join(at.work, 'agents.json'), JSON.stringify(reviewer));
    const { code } = await agent(at, ['-p', '-m', model, '--agents', given, 'go']);
    const all = await events(at);
    expect([code, contents(all, 'tool_result')]).toEqual([0, [expect.stringContaining('reviewer')]]);
  }
  const list = await agent(at, ['-p', '--agents', JSON.stringify(reviewer), '/agents']);
  expect(list.stdout).toMatch(/reviewer/);
  expect(await agent(at, ['-p', '--agents', '{"x": {"prompt": "p"}}', 'go'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--agents: "x" has no description'),
  });
  expect((await agent(at, ['-p', '--agents', 'none.json', 'go'])).stderr).toMatch(/--agents: \S+none\.json does not/);
});

test('--bare uses nothing of what the user and the project have added', async () => {
  const files = {
    'AGENTS.md': 'Use tabs.',
    '.claude/commands/hi.md': 'Say hi.',
    '.mcp.json': '{"mcpServers": {"x": {"command": "false"}}}',
  };
  const at = place(files);
  const model = script(at, [{ text: 'One.' }]);
  writeFileSync(join(at.work, 'sub.md'), '');
  await agent(at, ['config', 'trust', '--yes']);
  await agent(at, ['-p', '-m', model, 'go']);
  expect(contents(await events(at), 'system')[0]).toContain('Use tabs.');
  const bare = await agent(at, ['-p', '-m', model, '--bare', 'go']);
  expect([bare.code, bare.stderr]).toEqual([0, '']);
  expect(contents(await events(at), 'system')[0]).not.toContain('Use tabs.');
  expect((await agent(at, ['-p', '--bare', '/skills'])).stdout).toMatch(/no skills/i);
});

test('a run with such options records its command line, with the texts of files, so that it can be repeated', async () => {
  const at = place({
    'p.md': "It's yours.\n",
    'servers.json': '{"mcpServers": {}}',
    's.json': '{"approval": "mutating"}',
  });
  const model = script(at, [{ text: 'One.' }, { text: 'Two.' }]);
  const options = ['--replace-system-prompt', '@p.md', '--mcp-config', 'servers.json', '--settings', 's.json'];
  const asked = [
    '-p',
    '-m',
    model,
    ...options,
    '--agents',
    JSON.stringify(reviewer),
    '--bare',
    '--no-hooks',
    '--name',
    'Mine',
  ];
  await agent(at, [...asked, '--next', 'two', 'one']);
  const first = await events(at);
  const run = first.find(({ kind }) => kind === 'run');
  const again = run?.data?.arguments ?? [];
  expect(again).toEqual(
    expect.arrayContaining(["It's yours.\n", '{"mcpServers":{}}', '{"approval":"mutating"}', 'Mine']),
  );
  expect(run?.content).toContain(`--replace-system-prompt 'It'\\''s yours.\n'`);
  for (const name of ['p.md', 'servers.json', 's.json']) writeFileSync(join(at.work, name), 'other');
  expect((await agent(at, again)).stdout).toBe('One.\nTwo.\n');
  const second = await events(at);
  const said = (all: readonly Shown[]): unknown =>
    all.map(({ kind, content }) => [kind, kind === 'usage' ? '' : content]);
  expect(said(second)).toEqual(said(first));
});

test('a run without such options records no command line, a resumed one with them does', async () => {
  const at = place();
  const model = script(at, [{ text: 'One.' }, { text: 'Two.' }]);
  await agent(at, ['-p', '-m', model, '-v', 'one']);
  expect(contents(await events(at), 'run')).toEqual([]);
  await agent(at, ['-p', '-m', model, '-c', '--plan', 'two']);
  expect(contents(await events(at), 'run')).toEqual([expect.stringMatching(/^agent --?.* --plan .*-- two$/)]);
});

test('secrets of the command line are masked in the record', async () => {
  const at = place();
  const token = `sk-ant-api03-${'a1B2c3D4'.repeat(10)}`;
  const config = JSON.stringify({ mcpServers: { x: { command: 'false', env: { TOKEN: token } } } });
  await agent(at, ['-p', '-m', script(at, [{ text: 'One.' }]), '--mcp-config', config, 'one']);
  expect(JSON.stringify(await events(at))).not.toContain(token);
});

test('the REPL takes the options, too', async () => {
  const at = place();
  const { stdout } = await repl(
    at,
    ['-m', script(at, [{ text: 'One.' }]), '--plan', '--name', 'Mine', '--bare'],
    [
      ['go', /One\./],
      ['/status', /Approval +plan/],
    ],
  );
  expect(stdout).toContain('One.');
  expect(contents(await events(at), 'run')).toHaveLength(1);
});

import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { projects } from '../../src/app/project-files.js';
import { agentPaths } from '../../src/kernel/config/settings-file.js';
import { openTrustFile } from '../../src/kernel/config/trust-file.js';
import { modelServer, type ModelServer, type Turn } from '../e2e/model-server.js';
import { agent, lines, place, repl, script } from './inside.js';
import { bash, limitedPlace, refusedUntil, rows } from './usage-limits.js';

type At = ReturnType<typeof place>;

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

/** Writes a command, a skill or an agent of the user. */
function own(at: At, path: string, fields: readonly string[], body = 'Do it.'): void {
  write(join(at.home, '.agent', path), `---\n${fields.join('\n')}\n---\n${body}\n`);
}

const stream = ['-p', '--output-format', 'stream-json'];
const asking = ['--approval', 'mutating'];

/** A place whose models are those of a double of Anthropic. */
async function anthropic(turns: readonly Turn[]): Promise<{ readonly at: At; readonly server: ModelServer }> {
  const server = await modelServer(turns);
  return { at: limitedPlace(server), server };
}

const modelsOf = ({ requests }: ModelServer): readonly unknown[] => requests.map(({ body }) => body['model']);
const effortOf = ({ requests }: ModelServer, index: number): string =>
  JSON.stringify([requests[index]?.body['output_config'], requests[index]?.body['thinking']]);

const settingsOf = (at: At): readonly unknown[] =>
  rows(at)
    .filter(({ kind }) => kind === 'turn_settings')
    .map(({ content, data }) => [data?.['state'], content]);

const notes = (text: string, code = 'turn_settings'): readonly string[] =>
  lines(text).flatMap((line) => (line.type === 'notice' && line['code'] === code ? [String(line['message'])] : []));

test('a command has its model and effort for its turn alone, and the log and the usage say so', async () => {
  const { at, server } = await anthropic([{ text: 'One.' }, { text: 'Two.' }, { text: 'Three.' }]);
  own(at, 'commands/deep.md', ['model: claude-opus-4-5', 'effort: high']);
  const first = await agent(at, [...stream, '/deep']);
  expect([first.code, lines(first.stdout).at(-1)?.['text']]).toEqual([0, 'One.']);
  expect(notes(first.stdout)).toEqual(['/deep: this turn uses anthropic/claude-opus-4-5 with effort high.']);
  await agent(at, ['-p', '-c', 'again']);
  await agent(at, ['-p', '-c', '/deep once more']);
  expect(modelsOf(server)).toEqual(['claude-opus-4-5', 'claude-sonnet-5', 'claude-opus-4-5']);
  expect(effortOf(server, 0)).not.toBe(effortOf(server, 1));
  expect(settingsOf(at)).toEqual([
    ['set', '/deep: this turn uses anthropic/claude-opus-4-5 with effort high.'],
    ['ended', 'The settings of /deep have ended with its turn.'],
    ['set', '/deep: this turn uses anthropic/claude-opus-4-5 with effort high.'],
    ['ended', 'The settings of /deep have ended with its turn.'],
  ]);
  const used = rows(at).filter(({ kind }) => kind === 'usage' || kind === 'assistant');
  expect(used.map(({ kind, data }) => `${kind} ${String(data?.['model'])}`)).toEqual([
    ...['usage claude-opus-4-5', 'assistant claude-opus-4-5', 'usage claude-sonnet-5', 'assistant claude-sonnet-5'],
    ...['usage claude-opus-4-5', 'assistant claude-opus-4-5'],
  ]);
  const stats = JSON.parse((await agent(at, ['stats', '--json'])).stdout) as Readonly<Record<string, unknown>>;
  expect(JSON.stringify(stats)).toContain('anthropic/claude-opus-4-5');
  // The row of the session keeps its own model.
  const listed = JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as readonly object[];
  expect(listed).toMatchObject([{ model: 'claude-sonnet-5' }]);
});

test('in the REPL the model comes back after the turn; a notice names the settings once', async () => {
  const { at, server } = await anthropic([{ text: 'One.' }, { text: 'Two.' }]);
  own(at, 'skills/deep/SKILL.md', ['name: deep', 'description: Deep.', 'model: claude-opus-4-5']);
  const seen = await repl(
    at,
    [],
    [
      ['/skill:deep', 'One.'],
      ['plain', 'Two.'],
    ],
  );
  expect(modelsOf(server)).toEqual(['claude-opus-4-5', 'claude-sonnet-5']);
  expect(seen.stdout.split('this turn uses anthropic/claude-opus-4-5')).toHaveLength(2);
});

test('a model that cannot be used is named, and the turn uses that of the session', async () => {
  const { at, server } = await anthropic([{ text: 'One.' }, { text: 'Two.' }]);
  own(at, 'commands/a.md', ['model: openai/gpt-5.2']);
  own(at, 'commands/b.md', ['model: GPT-5.2 (copilot)']);
  const run = await agent(at, [...stream, '/a']);
  expect([run.code, notes(run.stdout)]).toEqual([
    0,
    [
      expect.stringMatching(
        /^\/a: the model openai\/gpt-5\.2 of its file cannot be used: .*key.*This turn uses anthropic/i,
      ),
    ],
  ]);
  expect(notes((await agent(at, [...stream, '/b'])).stdout)).toEqual([
    '/b: the model GPT-5.2 (copilot) of its file cannot be used: anthropic has no model GPT-5.2 (copilot). ' +
      'This turn uses anthropic/claude-sonnet-5.',
  ]);
  expect(modelsOf(server)).toEqual(['claude-sonnet-5', 'claude-sonnet-5']);
});

const made = (path: string): Turn => ({ calls: [{ name: 'file_write', arguments: { path, content: 'x' } }] });

/** The results of calls in a stream: the code of an error, or `ok`. */
const results = (text: string): readonly string[] =>
  lines(text).flatMap((line) => {
    if (line.type !== 'tool_result') return [];
    const envelope = JSON.parse(String(line['output'])) as { readonly code?: string };
    return [envelope.code ?? 'ok'];
  });

const freely = ['--approval', 'never'];

test.each([
  ['tools: Read, Grep', ['unknown_tool', 'unknown_tool']],
  ['tools: [Read, Bash]', ['unknown_tool', 'ok']],
  ["tools: ['search', 'runCommands']", ['unknown_tool', 'ok']],
  ['tools:\n  write: false\n  edit: false', ['unknown_tool', 'ok']],
  ['tools: {bash: false}', ['ok', 'unknown_tool']],
  ['tools:\n  "*": false\n  bash: true', ['unknown_tool', 'ok']],
  ['disallowed-tools: [Write, Edit]', ['unknown_tool', 'ok']],
  ['disallowedTools: Bash', ['ok', 'unknown_tool']],
  ['disallowed_tools: Bash Edit', ['ok', 'unknown_tool']],
  ['agent: plan', ['permission_denied', 'permission_denied']],
  ['mode: ask', ['permission_denied', 'permission_denied']],
  ['agent: build', ['ok', 'ok']],
  ['description: nothing', ['ok', 'ok']],
])('%s limits the turn of a command and of a skill, and no other turn', async (field, expected) => {
  for (const [kind, path] of [
    ['/limited', 'commands/limited.md'],
    ['/skill:limited', 'skills/limited/SKILL.md'],
  ] as const) {
    const at = place();
    own(at, path, ['name: limited', field]);
    const turns = [made('a.txt'), bash('touch b.txt'), { text: 'Done.' }];
    const run = await agent(at, [...stream, ...freely, '-m', script(at, turns), kind]);
    expect([kind, results(run.stdout)]).toEqual([kind, expected]);
    const plain = await agent(at, [...stream, ...freely, '-c', '-m', script(at, [...turns, ...turns]), 'plain']);
    expect([kind, results(plain.stdout)]).toEqual([kind, ['ok', 'ok']]);
  }
});

test('the request has the same tools in every turn, and a note says which may be used', async () => {
  const { at, server } = await anthropic([{ text: 'One.' }, { text: 'Two.' }]);
  own(at, 'commands/limited.md', ['tools: Read, Grep']);
  await agent(at, ['-p', '/limited']);
  await agent(at, ['-p', '-c', 'plain']);
  expect(server.requests[0]?.body['tools']).toEqual(server.requests[1]?.body['tools']);
  expect(JSON.stringify(server.requests[0]?.body['messages'])).toContain(
    'until this request is answered, you may use only these tools: Read, Grep.',
  );
});

test.each([
  'allowed-tools: Bash(touch *)',
  'allowedTools: ["Bash(touch *)", "Read"]',
  'allowed_tools:\n  - Bash(touch:*)\n  - Read',
  'allowed-tools: Read Bash(touch *)',
  'allowed-tools: run_shell_command(touch *)',
])('%s lets the calls of the turn run without approval, and nothing else', async (field) => {
  const at = place();
  own(at, 'commands/make.md', [field], 'Made: !`touch c.txt`');
  const turns = [bash('touch a.txt'), bash('mkdir d'), { text: 'Done.' }];
  const run = await agent(at, [...stream, ...asking, '-m', script(at, turns), '/make']);
  expect([run.code, results(run.stdout)]).toEqual([6, ['ok', 'ok', 'permission_denied']]);
  const decided = rows(at).filter(({ kind }) => kind === 'tool_result');
  expect(decided.map(({ data }) => data?.['decided_by'])).toEqual(['rule', 'rule', 'mode']);
  const plain = await agent(at, [...stream, ...asking, '-c', '-m', script(at, [...turns, ...turns]), 'plain']);
  expect([plain.code, results(plain.stdout)]).toEqual([6, ['permission_denied', 'permission_denied']]);
});

test('allowed-tools allows nothing that is dangerous, ruled, planned, or outside of the project', async () => {
  const at = place({ 'old/a.txt': 'a' });
  const allowed = 'allowed-tools: Bash(rm:*), Bash(mkdir:*), Write, Bash';
  own(at, 'commands/make.md', [allowed]);
  const outside = join(at.home, 'outside.txt');
  const turns = [bash('rm -rf old'), made(outside), made('in.txt'), { text: 'Done.' }];
  const run = await agent(at, [...stream, ...asking, '-m', script(at, turns), '/make']);
  expect(results(run.stdout)).toEqual(['permission_denied', 'permission_denied', 'ok']);
  expect(notes(run.stdout)).toContain(
    '/make: `Bash` of its file allows nothing: an allow rule for bash needs the leading words of a command.',
  );
  const made2 = [bash('mkdir d'), { text: 'Done.' }];
  const all = [
    [['--disallowed-tools', 'Bash(mkdir *)'], 'permission_denied'],
    [['--ask-tools', 'Bash(mkdir *)'], 'permission_denied'],
    [['--approval', 'always'], 'permission_denied'],
    [['--plan'], 'permission_denied'],
    [[], 'ok'],
  ] as const;
  for (const [options, expected] of all) {
    const one = await agent(at, [...stream, ...asking, ...options, '-m', script(at, made2), '/make']);
    expect([options, results(one.stdout)]).toEqual([options, [expected]]);
  }
});

test('a project allows calls only once it is trusted as it is, and the question about trust says what', async () => {
  const at = place();
  const file = join(at.work, '.claude/commands/make.md');
  write(file, '---\nallowed-tools: Bash(touch *)\nmodel: opus\n---\nMake it.\n');
  const model = script(at, [bash('touch a.txt'), { text: 'Done.' }]);
  expect((await agent(at, ['-p', '-m', model, '/make'])).code).not.toBe(0);
  const settings = { cwd: at.work, home: at.home, config: { files: agentPaths(at.env, at.home) } };
  const files = await projects.files(settings);
  if (files === null) throw new Error('nothing to trust');
  expect(files.files[0]?.lines).toEqual([
    'command /make: Make it.',
    'model opus',
    'runs without approval: Bash(touch *)',
  ]);
  const trust = openTrustFile(settings.config.files.trust).files;
  // An answer from before files could allow calls was about the bytes of the file alone.
  const bytes = createHash('sha256').update(readFileSync(file)).digest('hex');
  const before = createHash('sha256').update(`.claude/commands/make.md\0${bytes}\n`).digest('hex');
  trust.record({ ...files, sha256: before }, true, 1);
  expect((await agent(at, ['-p', '-m', model, '/make'])).code).not.toBe(0);
  trust.record(files, true, 1);
  const run = await agent(at, [...stream, ...asking, '-m', model, '/make']);
  expect([run.code, results(run.stdout)]).toEqual([0, ['ok']]);
});

function reviewer(at: At, turns: readonly unknown[], fields: readonly string[] = []): void {
  const plays = join(at.home, 'reviewer.json');
  writeFileSync(plays, JSON.stringify({ turns }));
  own(at, 'agents/reviewer.md', ['name: reviewer', 'description: Reviews.', `model: offline/${plays}`, ...fields]);
}

test.each([
  ['/look', 'commands/look.md', ['agent: reviewer']],
  ['/look', 'commands/look.md', ['agent: reviewer', 'subtask: true']],
  ['/look', 'commands/look.md', ['context: fork', 'agent: reviewer']],
  ['/skill:look', 'skills/look/SKILL.md', ['name: look', 'context: fork', 'agent: reviewer']],
])('%s of %s with %s is done by the sub-agent, and the model gets its report', async (typed, path, fields) => {
  const at = place();
  reviewer(at, [{ text: 'Two faults.' }]);
  own(at, path, fields, 'Look at $ARGUMENTS.');
  const run = await agent(at, [...stream, '-m', script(at, [{ text: 'Thanks.' }]), `${typed} src`]);
  expect([run.code, lines(run.stdout).at(-1)?.['text']]).toEqual([0, 'Thanks.']);
  const sent = rows(at).filter(({ kind, data }) => kind === 'user' && data?.['note'] !== true);
  expect(sent.map(({ content }) => content)).toContain(`${typed} src\n\nReport of reviewer:\nTwo faults.`);
  expect(sent.map(({ content }) => content).join()).toContain('Look at src.');
});

test.each([
  ['agent: nobody', /its agent nobody cannot do it.*there is no agent of this name/],
  ['agent: reviewer\nsubtask: false', /agent reviewer is ignored because subtask is false/],
  ['context: other', /context other is ignored/],
  ['effort: enormous', /effort enormous is ignored/],
  ['hooks:\n  Stop: x', /hooks of its file has no effect here/],
  ['temperature: 0.1', /temperature of its file has no effect here/],
])('%s is named, and the conversation does the work', async (field, says) => {
  const at = place();
  reviewer(at, [{ text: 'never' }]);
  own(at, 'commands/look.md', [field], 'Look.');
  const run = await agent(at, [...stream, '-m', script(at, [{ text: 'Done.' }]), '/look']);
  expect([run.code, lines(run.stdout).at(-1)?.['text']]).toEqual([0, 'Done.']);
  expect(notes(run.stdout, 'command').join('\n')).toMatch(says);
});

test('the limits of a turn are those of its sub-agents', async () => {
  const at = place();
  reviewer(at, [made('a.txt'), bash('touch b.txt'), { text: 'Tried.' }]);
  own(at, 'commands/look.md', ['agent: reviewer', 'disallowed-tools: Write', 'allowed-tools: Bash(touch *)']);
  const run = await agent(at, [...stream, '-m', script(at, [{ text: 'Thanks.' }]), '/look']);
  expect(run.code).toBe(0);
  const codes = rows(at).flatMap(({ kind, data }) =>
    kind === 'tool_result' ? [(JSON.parse(String(data?.['output'])) as { readonly code?: string }).code ?? 'ok'] : [],
  );
  expect(codes.toSorted()).toEqual(['ok', 'ok', 'unknown_tool']);
});

test('a skill that the model loads has its model and limits for the rest of the turn, and allows nothing', async () => {
  const load: Turn = { calls: [{ name: 'skill', arguments: { name: 'deep' } }] };
  const { at, server } = await anthropic([load, bash('touch a.txt'), { text: 'One.' }, { text: 'Two.' }]);
  const fields = ['model: claude-opus-4-5', 'allowed-tools: Bash(touch *)', 'disallowed-tools: Write'];
  own(at, 'skills/deep/SKILL.md', ['name: deep', 'description: Deep.', ...fields]);
  const run = await agent(at, [...stream, ...asking, 'go']);
  expect(results(run.stdout)).toEqual(['ok', 'permission_denied']);
  expect(notes(run.stdout)).toEqual([
    '/skill:deep: its file allows calls only where you use the skill yourself.',
    '/skill:deep: this turn uses anthropic/claude-opus-4-5, does not have the tools Write.',
  ]);
  await agent(at, ['-p', '-c', 'plain']);
  expect(modelsOf(server)).toEqual(['claude-sonnet-5', 'claude-opus-4-5', 'claude-opus-4-5', 'claude-sonnet-5']);
});

test('a usage limit stops the turn of a command, and another process continues it with its model', async () => {
  const retryAt = Math.ceil(Date.now() / 1000) * 1000 + 1000;
  const turns = [bash('echo one >> work.log'), refusedUntil(retryAt), { text: 'Done.' }];
  const { at, server } = await anthropic(turns);
  own(at, 'commands/deep.md', ['model: claude-opus-4-5', 'allowed-tools: Bash(echo one *)']);
  expect((await agent(at, ['-p', '/deep'])).code).toBe(1);
  const again = await agent(at, ['-p', '-c', '--wait-for-limit']);
  expect([again.code, again.stdout]).toEqual([0, 'Done.\n']);
  expect(new Set(modelsOf(server))).toEqual(new Set(['claude-opus-4-5']));
  expect(settingsOf(at).map((row) => (row as readonly unknown[])[0])).toEqual(['set', 'ended']);
});

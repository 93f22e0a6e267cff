import { existsSync } from 'node:fs';
import { PassThrough } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { agent, lines, place, script } from './inside.js';

type Line = Readonly<Record<string, unknown>>;
type Place = ReturnType<typeof place>;

const says = (content: unknown, more: Line = {}): Line => ({
  type: 'user',
  message: { role: 'user', content },
  ...more,
});
const wants = (id: string, request: Line): Line => ({ type: 'control_request', request_id: id, request });
const answers = (id: unknown, response: Line): Line => ({
  type: 'control_response',
  response: { subtype: 'success', request_id: id, response },
});
const runs = (command: string) => ({ calls: [{ name: 'bash', arguments: { command } }] });

/** Speaks with the program: `first` at once, and after each of its lines what `then` says. `null` ends the input. */
async function talk(
  at: Place,
  args: readonly string[],
  first: readonly (Line | string | null)[],
  then: (line: Line, all: readonly Line[]) => readonly (Line | null)[] = () => [],
): Promise<{ readonly code: number | null; readonly said: readonly Line[]; readonly stderr: string }> {
  const stdin = new PassThrough();
  const send = (line: Line | string | null): void => {
    if (line === null) stdin.end();
    else stdin.write(typeof line === 'string' ? line : `${JSON.stringify(line)}\n`);
  };
  let seen = 0;
  const onStdout = (text: string): void => {
    const all = lines(text.slice(0, text.lastIndexOf('\n') + 1));
    while (seen < all.length) then(all[seen++] ?? {}, all).forEach(send);
  };
  first.forEach(send);
  const { code, stdout, stderr } = await agent(
    at,
    ['-p', '--output-format', 'stream-json', '--input-format', 'stream-json', ...args],
    { stdin, onStdout },
  );
  return { code, said: lines(stdout), stderr };
}

const ended = (line: Line): boolean => line['type'] === 'result';
/** Ends the input at the result number `count`. */
const until =
  (count: number) =>
  (line: Line, all: readonly Line[]): readonly null[] =>
    ended(line) && all.filter(ended).length === count ? [null] : [];

test('each line is a turn of one session, in order, until the input ends; only LF ends a line', async () => {
  const at = place();
  const turns = [{ text: 'one' }, { text: 'two' }, { text: 'three' }];
  const odd = 'a\u2028b\u0085c\\n';
  const { code, said, stderr } = await talk(
    at,
    ['-m', script(at, turns)],
    [
      says([
        { type: 'text', text: odd },
        { type: 'text', text: 'd' },
      ]),
      '\n',
      `${JSON.stringify(says('second'))}\r\n{"type":"user","mess`,
      'age":{"role":"user","content":"third"}}\n',
      // Without a last LF the end of the input ends the line.
    ],
    until(3),
  );
  expect([code, stderr]).toEqual([0, '']);
  expect(said.map(({ type }) => type).filter((type) => type === 'session' || type === 'result')).toEqual([
    'session',
    'result',
    'result',
    'result',
  ]);
  expect(said.filter(ended).map(({ text }) => text)).toEqual(['one', 'two', 'three']);
  const { session_id: id } = said[0] ?? {};
  const events = JSON.parse((await agent(at, ['sessions', 'show', String(id), '--json'])).stdout) as readonly Line[];
  expect(events.filter(({ kind }) => kind === 'user').map(({ content }) => content)).toEqual([
    `${odd}\nd`,
    'second',
    'third',
  ]);
});

test('an image goes with its message', async () => {
  const at = place();
  const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
  const image = (data: string) => ({ type: 'image', source: { type: 'base64', media_type: 'image/png', data } });
  const { said } = await talk(
    at,
    ['-m', script(at, [{ text: 'seen' }])],
    [says([{ type: 'text', text: 'look' }, image(png)])],
    until(1),
  );
  expect(said.filter(({ code }) => code === 'bad_input')).toEqual([]);
  const { session_id: id } = said.find(({ type }) => type === 'session') ?? {};
  const events = JSON.parse((await agent(at, ['sessions', 'show', String(id), '--json'])).stdout) as readonly Line[];
  expect(events.find(({ kind }) => kind === 'user')).toMatchObject({
    content: expect.stringMatching(/^look\n/) as string,
    data: { attachments: [{ media_type: 'image/png', width: 1, height: 1 }] },
  });
});

test('what is not a line is told, and the others are read on', async () => {
  const at = place();
  const { code, said } = await talk(
    at,
    ['-m', script(at, [{ text: 'one' }])],
    [
      '{"type":"user"\n',
      '[1]\n',
      { type: 'system' },
      says(''),
      { type: 'control_request', request: {} },
      says([{ type: 'text', text: 'hi' }, { type: 'tool_result' }]),
    ],
    until(1),
  );
  expect(code).toBe(0);
  expect(said.filter(({ code: problem }) => problem === 'bad_input').map(({ message }) => message)).toEqual([
    expect.stringContaining('a line is not JSON') as string,
    'a line is not a JSON object',
    'a line has the type "system"; user and control_request are supported',
    'a user line has no text',
    'a control_request needs a request_id and a request with a subtype',
    'removed from a message: tool_result',
  ]);
  expect(said.filter(ended)).toMatchObject([{ status: 'completed', text: 'one' }]);
  expect(said.map(({ type }) => type).slice(0, 2)).toEqual(['session', 'error']);
});

test.each([
  ['nothing', []],
  ['empty lines', ['\n', ' \n']],
  ['a blank message', [says(' \n')]],
  ['no JSON', ['go\n']],
] as const)('input of %s ends with a usage error, and standard output stays empty', async (_name, sent) => {
  const { code, said, stderr } = await talk(place(), ['-m', 'offline'], [...sent, null]);
  expect([code, said]).toEqual([2, []]);
  const problems = stderr.split('\n').filter((line) => line.startsWith('agent: '));
  expect(problems).toHaveLength(1 + sent.filter((line) => line !== '\n' && line !== ' \n').length);
  expect(problems.at(-1)).toBe('agent: standard input had no message');
});

test('a line that cannot be read before the first message is reported behind the session line', async () => {
  const at = place();
  const { said } = await talk(
    at,
    ['-m', script(at, [{ text: 'one' }])],
    ['no JSON\n', says(' '), says('go')],
    until(1),
  );
  expect(said.slice(0, 3).map(({ type }) => type)).toEqual(['session', 'error', 'error']);
});

test('what comes before a session that cannot begin goes to standard error', async () => {
  const { code, said, stderr } = await talk(place(), ['-m', 'openai/gpt-5.2'], ['no JSON\n', says('go'), null]);
  expect([code, said]).toEqual([4, []]);
  expect(stderr).toContain('agent: a line is not JSON');
});

test.each([undefined, 5, null])(
  'set_permission_mode with %j in place of a name is answered with an error',
  async (mode) => {
    const { said } = await talk(
      place(),
      ['-m', 'offline'],
      [wants('1', { subtype: 'set_permission_mode', mode }), null],
    );
    expect(said).toMatchObject([
      {
        response: {
          subtype: 'error',
          error: expect.stringMatching(/^set_permission_mode: the mode is .*, not a name$/) as string,
        },
      },
    ]);
  },
);

test('a permission prompt tool without lines of input is refused', async () => {
  expect(await agent(place(), ['-p', '-m', 'offline', '--permission-prompt-tool', 'stdio', 'go'])).toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringContaining('--permission-prompt-tool needs --input-format stream-json') as string,
  });
});

test.each([5, {}, [], true, ''])('set_model with %j in place of a name is answered with an error', async (model) => {
  const at = place();
  const { said } = await talk(
    at,
    ['-m', script(at, [{ text: 'one' }])],
    [wants('1', { subtype: 'set_model', model }), says('go')],
    until(1),
  );
  expect(said.find(({ type }) => type === 'control_response')).toMatchObject({
    response: { subtype: 'error', error: expect.stringMatching(/^set_model: the model is .*, not a name$/) as string },
  });
});

test.each(['text', 'stream-json'])(
  'a permission prompt tool that is not known is refused with input as %s',
  async (input) => {
    const args = ['-p', '--input-format', input, '--output-format', 'stream-json', '--permission-prompt-tool', 'bogus'];
    expect(await agent(place(), [...args, ...(input === 'text' ? ['go'] : [])])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--permission-prompt-tool: `bogus` is not known') as string,
    });
  },
);

test('an interrupt ends the turn, and the next line is a turn as before', async () => {
  const at = place();
  const { said } = await talk(
    at,
    ['-m', script(at, [runs('echo on; sleep 600'), { text: 'after' }])],
    [says('go')],
    (line, all) => {
      if (line['type'] === 'tool_call') return [wants('stop', { subtype: 'interrupt' })];
      if (line['type'] !== 'result') return [];
      return all.filter(ended).length === 1 ? [says('next')] : [null];
    },
  );
  expect(said.find(({ type }) => type === 'control_response')).toEqual({
    type: 'control_response',
    response: { subtype: 'success', request_id: 'stop', response: {} },
  });
  expect(said.filter(ended)).toMatchObject([{ status: 'interrupted' }, { status: 'completed', text: 'after' }]);
});

test('a message with the priority "now" reaches the turn that runs', async () => {
  const at = place();
  const turns = [runs('while [ ! -e go ]; do sleep 0.02; done'), { text: 'done' }];
  const { said } = await talk(at, ['-m', script(at, turns)], [says('go')], (line, all) => {
    if (line['type'] !== 'tool_call') return until(1)(line, all);
    at.file('go', '');
    return [says('left, not right', { priority: 'now' })];
  });
  expect(said.filter(ended)).toHaveLength(1);
  const { session_id: id } = said[0] ?? {};
  const events = JSON.parse((await agent(at, ['sessions', 'show', String(id), '--json'])).stdout) as readonly Line[];
  const kinds = events.map(({ kind }) => kind).filter((kind) => kind === 'user' || kind === 'tool_result');
  expect(kinds).toEqual(['user', 'tool_result', 'user']);
});

describe('questions about calls', () => {
  const removal = (at: Place) => ['-m', script(at, [runs('rm -rf kept.txt'), { text: 'done' }])];
  const asks = ['--permission-prompt-tool', 'stdio'];
  const asked = (line: Line): boolean => line['type'] === 'control_request';

  test.each([
    ['a yes', { behavior: 'allow', updatedInput: { command: 'rm -rf kept.txt' } }, false, ''],
    ['a yes without the input', { behavior: 'allow', updatedInput: {} }, false, ''],
    ['a no', { behavior: 'deny', message: 'not that one' }, true, 'The user denied this: not that one'],
    [
      'another input',
      { behavior: 'allow', updatedInput: { command: 'rm -rf /' } },
      true,
      'make the call again with this input',
    ],
    ['anything else', { behavior: 'maybe' }, true, 'The user denied this.'],
  ])('%s', async (_name, response, isKept, output) => {
    const at = place();
    const kept = at.file('kept.txt', '');
    const { code, said } = await talk(at, [...removal(at), ...asks], [says('go')], (line, all) =>
      asked(line) ? [answers(line['request_id'], response)] : until(1)(line, all),
    );
    expect(said.filter(asked)).toEqual([
      {
        type: 'control_request',
        request_id: 'ask_1',
        request: {
          subtype: 'can_use_tool',
          tool_name: 'bash',
          input: { command: 'rm -rf kept.txt' },
          tool_use_id: expect.any(String) as string,
          decision_reason: '`rm -rf kept.txt` deletes recursively',
        },
      },
    ]);
    expect(existsSync(kept)).toBe(isKept);
    expect(said.find(({ type }) => type === 'tool_result')?.['output']).toContain(output);
    expect(code).toBe(0);
  });

  test('a question that is open at the end of the input, or that an interrupt ends, is a no', async () => {
    for (const [sent, cancelled] of [
      [null, false],
      [wants('stop', { subtype: 'interrupt' }), true],
    ] as const) {
      const at = place();
      const kept = at.file('kept.txt', '');
      const { said } = await talk(at, [...removal(at), ...asks], [says('go')], (line, all) =>
        asked(line) ? [sent] : until(1)(line, all),
      );
      expect(existsSync(kept)).toBe(true);
      expect(said.some(({ type }) => type === 'control_cancel_request')).toBe(cancelled);
      expect(said.filter(ended)).toHaveLength(1);
    }
  });

  test('without --permission-prompt-tool nobody is asked', async () => {
    const at = place();
    const { code, said } = await talk(at, removal(at), [says('go')], until(1));
    expect(said.filter(asked)).toEqual([]);
    expect(said.find(({ type }) => type === 'tool_result')?.['output']).toContain('this run cannot ask');
    expect(code).toBe(6);
  });
});

test('the other program sets the model, the mode and the prompt, and nothing that would only seem to count', async () => {
  const at = place();
  const first = script(at, [{ text: '' }, { text: '' }, { text: 'of the first' }]);
  const second = script(at, [runs('touch made.txt'), { text: 'of the second' }]);
  const { said } = await talk(
    at,
    ['-m', first],
    [
      wants('1', { subtype: 'initialize', hooks: { PreToolUse: [{ hookCallbackIds: ['x'] }] } }),
      wants('2', { subtype: 'initialize', sdkMcpServers: ['x'] }),
      wants('3', { subtype: 'initialize', systemPrompt: ['Speak in verse.'] }),
      wants('4', { subtype: 'set_permission_mode', mode: 'bypassPermissions' }),
      wants('5', { subtype: 'set_permission_mode', mode: 'plan' }),
      wants('6', { subtype: 'set_model', model: second }),
      says('go'),
      wants('7', { subtype: 'rewind_files' }),
    ],
    (line, all) => {
      if (!ended(line)) return [];
      return all.filter(ended).length === 1
        ? [wants('8', { subtype: 'set_model', model: null }), says('again')]
        : [null];
    },
  );
  const responses = said.filter(({ type }) => type === 'control_response').map(({ response }) => response as Line);
  expect(responses.map(({ request_id: id, subtype }) => `${String(id)} ${String(subtype)}`)).toEqual([
    '1 error',
    '2 error',
    '3 success',
    '4 error',
    '5 success',
    '6 success',
    '7 error',
    '8 success',
  ]);
  expect(responses[2]).toMatchObject({
    response: { commands: [], tools: expect.arrayContaining(['bash']) as unknown },
  });
  expect(said.filter(ended).map(({ text }) => text)).toEqual(['of the second', 'of the first']);
  expect(existsSync(`${at.work}/made.txt`)).toBe(false);
  const { session_id: id } = said.find(({ type }) => type === 'session') ?? {};
  const events = JSON.parse((await agent(at, ['sessions', 'show', String(id), '--json'])).stdout) as readonly Line[];
  expect(events[0]).toMatchObject({ kind: 'system', content: expect.stringContaining('Speak in verse.') as string });
});

test.each([
  [['--output-format', 'json'], 'answers as stream-json, not as json'],
  [['a prompt'], 'send the prompt on standard input'],
  [['--image', 'a.png'], 'send images on standard input'],
  [['--permission-prompt-tool', 'mcp__x'], 'is not known'],
  [['--input-format', 'yaml'], 'is not a format'],
  [['--dialect', 'clade'], 'Did you mean claude?'],
])('%j is a mistake', async (more, message) => {
  const { code, stderr, said } = await talk(place(), more, []);
  expect([code, said]).toEqual([2, []]);
  expect(stderr).toContain(message);
});

test("in Claude Code's dialect its lines come, with its names of tools", async () => {
  const at = place({ 'a.txt': 'hello\n' });
  const turns = [
    { text: 'I look.', calls: [{ name: 'file_read', arguments: { path: 'a.txt' } }, ...runs('rm -rf a.txt').calls] },
    { text: 'Done.' },
    { text: 'Again.' },
  ];
  const { said } = await talk(
    at,
    ['-m', script(at, turns), '--dialect', 'claude', '--permission-prompt-tool', 'stdio'],
    [says('go'), says('again')],
    (line, all) =>
      line['type'] === 'control_request'
        ? [answers(line['request_id'], { behavior: 'deny', message: 'no' })]
        : until(2)(line, all),
  );
  const shape = said.map(({ type, subtype, message, request }) => {
    const { content } = (message ?? {}) as { readonly content?: readonly Line[] };
    const [block] = content ?? [];
    return [type, subtype ?? block?.['type'] ?? (request as Line | undefined)?.['subtype'], block?.['name']]
      .filter(Boolean)
      .join(' ');
  });
  expect(shape).toEqual([
    'system init',
    'assistant text',
    'assistant tool_use Read',
    'assistant tool_use Bash',
    'user tool_result',
    'control_request can_use_tool',
    'user tool_result',
    'assistant text',
    'result success',
    'system init',
    'assistant text',
    'result success',
  ]);
  const input = { file_path: `${at.work}/a.txt` };
  expect(said[2]).toMatchObject({ message: { content: [{ input }] }, parent_tool_use_id: null });
  expect(said[5]).toMatchObject({ request: { tool_name: 'Bash', input: { command: 'rm -rf a.txt' } } });
  expect(said[6]).toMatchObject({ message: { content: [{ is_error: true, content: 'The user denied this: no' }] } });
  expect(said.filter(ended)).toMatchObject([
    { is_error: false, result: 'Done.', num_turns: 2, permission_denials: [{ tool_name: 'Bash' }], total_cost_usd: 0 },
    { result: 'Again.', permission_denials: [] },
  ]);
});

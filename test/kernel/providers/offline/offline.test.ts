import { expect, test } from 'vitest';
import type { Conversation, Message } from '../../../../src/kernel/core/projection.js';
import type { ModelChunk } from '../../../../src/kernel/core/provider.js';
import { createOfflineProvider } from '../../../../src/kernel/providers/offline/offline.js';
import { readRequest } from '../../../../src/kernel/providers/offline/plain-requests.js';

const names = ['glob', 'grep', 'file_read', 'file_write', 'file_edit', 'bash'];
const tools = names.map((name) => ({ name, description: name, input_schema: { type: 'object' } }));

function talk(messages: readonly Message[], offered = tools): Conversation {
  return { system: '', tools: offered, settings: { model_output_size: 32_768 }, messages };
}

async function ask(conversation: Conversation, toolChoice: 'auto' | 'none' = 'auto'): Promise<readonly ModelChunk[]> {
  const chunks: ModelChunk[] = [];
  const provider = createOfflineProvider({ cwd: '/', sleep: () => Promise.resolve(), isInstalled });
  const request = {
    conversation,
    ref: { provider: 'offline', api: 'offline', model: 'offline' },
    toolChoice,
    signal: new AbortController().signal,
  } as const;
  for await (const chunk of provider.stream(request)) chunks.push(chunk);
  return chunks;
}

const isInstalled = (): boolean => true;

function textOf(chunks: readonly ModelChunk[]): string {
  return chunks.map((chunk) => (chunk.type === 'text' ? chunk.text : '')).join('');
}

const user = (content: string): Message => ({ role: 'user', seq: 3, content });
const answered = (name: string, args: object, output: object): Message => ({
  role: 'assistant',
  seq: 4,
  text: '',
  data: null,
  calls: [
    { id: 'x', name, arguments: JSON.stringify(args), result: { output: JSON.stringify(output), success: true } },
  ],
});

test.each([
  ['list **/*.ts', 'glob', { pattern: '**/*.ts' }],
  ['find *.md', 'glob', { pattern: '*.md' }],
  ['find *.md in docs', 'glob', { pattern: '*.md', path: 'docs' }],
  ['list all *.json files', 'glob', { pattern: '*.json' }],
  ['list python files in src', 'glob', { pattern: '**/*.py', path: 'src' }],
  ['list files', 'glob', { pattern: '*' }],
  ['what files are here?', 'glob', { pattern: '*' }],
  ['list the files in src/', 'glob', { pattern: '*', path: 'src/' }],
  ['read README.md', 'file_read', { path: 'README.md' }],
  ['Please show me README.md', 'file_read', { path: 'README.md' }],
  ['can you read the file `src/a b.ts`?', null, {}],
  ['what is in package.json?', 'file_read', { path: 'package.json' }],
  ['grep TODO in src', 'grep', { pattern: 'TODO', path: 'src' }],
  ['grep -i todo', 'grep', { pattern: 'todo', ignore_case: true }],
  ['search for "two words" in src/core', 'grep', { pattern: 'two words', path: 'src/core' }],
  ['search for X in Y', 'grep', { pattern: 'X', path: 'Y' }],
  ['find TODO in the src folder', 'grep', { pattern: 'TODO', path: 'src' }],
  ['run npm test', 'bash', { command: 'npm test' }],
  ['please run ls -la', 'bash', { command: 'ls -la' }],
  ['run `ls -la`', 'bash', { command: 'ls -la' }],
  ['run git log --since=1.week -- a.ts', 'bash', { command: 'git log --since=1.week -- a.ts' }],
  ['write hello to notes.txt', 'file_write', { path: 'notes.txt', content: 'hello\n' }],
  ['write "two words" into a/b.txt', 'file_write', { path: 'a/b.txt', content: 'two words\n' }],
  ['create a file called x.txt with "hi there"', 'file_write', { path: 'x.txt', content: 'hi there\n' }],
  ['run ./scripts/build.sh --fast', 'bash', { command: './scripts/build.sh --fast' }],
  ["run git commit -m 'fix the tests and more'", 'bash', { command: "git commit -m 'fix the tests and more'" }],
  ['run `frobnicate the tests`', 'bash', { command: 'frobnicate the tests' }],
  ['read README', 'file_read', { path: 'README' }],
  ['read the file notes', 'file_read', { path: 'notes' }],
  ['list .foo files', 'glob', { pattern: '**/*.foo' }],
  [
    'replace hello with goodbye in notes.txt',
    'file_edit',
    { path: 'notes.txt', old_string: 'hello', new_string: 'goodbye' },
  ],
  ['remind me in 20 minutes to look at the oven', 'add_reminder', { delay: '20m', message: 'look at the oven' }],
  ['Please remind me in 2 hours to call Ada', 'add_reminder', { delay: '2h', message: 'call Ada' }],
  ['remember that the tests need port 5433', 'save_note', { content: 'the tests need port 5433' }],
  ['remember the milk', null, {}],
  ['write me a poem about the sea', null, {}],
  ['why is the sky blue', null, {}],
  ['hi', null, {}],
])('%s', (text, name, args) => {
  const steps = readRequest(text, isInstalled);
  expect(steps).toEqual(name === null ? null : [[{ name, args }]]);
});

test.each([
  'write a function that sorts numbers to src/sort.ts',
  'write tests to src/sort.test.ts',
  'write hello to everyone',
  'save my changes to main.ts',
  'put the config into config.json',
  'create a file called x.txt with hi there',
  'create a.ts with a class for users',
  'replace tabs with two spaces in src/a.ts',
  'change the tests to use vitest in package.json',
  'run the tests',
  'run npm test and fix failures',
  'run npm test then fix it',
  'run the build, then deploy',
  'run make sure that it works',
  'run go to the next step',
  'execute order 66',
  'bash the door',
  'find the bug in src/main.ts',
  'find bugs in src',
  'search for the word total and rename it to sum',
  'search the web for cats',
  'look at the code',
  'where is the config loaded?',
  'grep two words',
  'show me the weather',
  'open https://example.com',
  'show me how this works',
  'read the docs',
  'what are you?',
  'what is there',
  'list big files',
  'find unused files',
  'what is in the box?',
  'fix the failing test',
  'explain src/main.ts',
  'delete notes.txt',
  'read README.md and summarise it',
  'list the files and delete them',
  'make it work with node 20',
])('plain English is not acted on: %s', (text) => {
  expect(readRequest(text, isInstalled)).toBeNull();
});

test('a program that is not installed is not run by its name', () => {
  expect(readRequest('run npm test', () => false)).toBeNull();
  expect(readRequest('run `npm test`', () => false)).toEqual([[{ name: 'bash', args: { command: 'npm test' } }]]);
});

test('several files are read in one response, several requests one after the other', () => {
  expect(readRequest('read a.ts, b.ts and c.ts', isInstalled)).toEqual([
    [
      { name: 'file_read', args: { path: 'a.ts' } },
      { name: 'file_read', args: { path: 'b.ts' } },
      { name: 'file_read', args: { path: 'c.ts' } },
    ],
  ]);
  expect(readRequest('write hello to n.txt, then read n.txt', isInstalled)).toEqual([
    [{ name: 'file_write', args: { path: 'n.txt', content: 'hello\n' } }],
    [{ name: 'file_read', args: { path: 'n.txt' } }],
  ]);
});

test('a request becomes a call with an id of its own, and nothing is charged', async () => {
  const first = [user('list *.md')];
  const later = [...first, answered('glob', { pattern: '*.md' }, { output: 'a.md', count: 1 }), user('read a.md')];
  expect(await ask(talk(first))).toEqual([
    { type: 'tool_call', call: { id: 'offline_1', name: 'glob', arguments: '{"pattern":"*.md"}' } },
    { type: 'usage', usage: { input: 0, cacheRead: 0, cacheWrite: 0, output: 0 }, costUsd: 0 },
    { type: 'end', stop: 'tool' },
  ]);
  expect((await ask(talk(later)))[0]).toEqual({
    type: 'tool_call',
    call: { id: 'offline_2', name: 'file_read', arguments: '{"path":"a.md"}' },
  });
});

test.each([
  [
    'list *.md',
    'glob',
    { pattern: '*.md' },
    { output: 'a.md\nb.md', count: 2 },
    '2 files match `*.md`:\n```\na.md\nb.md\n```',
  ],
  ['list *.zip', 'glob', { pattern: '*.zip' }, { output: '', count: 0 }, 'No file matches `*.zip`.'],
  ['grep x', 'grep', { pattern: 'x' }, { output: 'a:1: x', count: 1 }, '1 line matches `x`:\n```\na:1: x\n```'],
  ['read a', 'file_read', { path: 'a' }, { output: 'one\ntwo\n' }, '`a` has 2 lines:\n```\none\ntwo\n```'],
  [
    'run false',
    'bash',
    { command: 'false' },
    { output: '', exit_code: 1 },
    '`false` ended with exit code 1 without output.',
  ],
  [
    'run sleep 9',
    'bash',
    { command: 'sleep 9' },
    { output: '', job: 1, running: true },
    '`sleep 9` continues in the background.',
  ],
  [
    'read b',
    'file_read',
    { path: 'b' },
    { error: 'There is no file b.', code: 'not_found' },
    '`file_read` did not work: There is no file b.',
  ],
  [
    'run ls',
    'bash',
    { command: 'ls' },
    { output: '[test mode] bash not run', test_mode: true },
    '`bash` was not run, because test mode is on.',
  ],
])('%s is summed up from the result', async (text, name, args, output, summary) => {
  const said = await ask(talk([user('hi'), user(text), answered(name, args, output)]));
  expect(textOf(said)).toBe(summary);
  expect(said.at(-1)).toEqual({ type: 'end', stop: 'stop' });
});

test('what is not understood gets help that says what this is and how to connect a model', async () => {
  const chunks = await ask(talk([user('why is the sky blue')]));
  expect(textOf(chunks)).toMatch(/no language model[\s\S]*read README\.md[\s\S]*export OPENROUTER_API_KEY=/);
  expect(chunks.length).toBeGreaterThan(10);
});

test('the first answer of a session says that no model gave it', async () => {
  expect(
    textOf(await ask(talk([user('list *'), answered('glob', { pattern: '*' }, { output: '', count: 0 })]))),
  ).toContain('not a language model');
});

test('where tools are forbidden or missing no call is made', async () => {
  const results = [user('list *'), answered('glob', { pattern: '*' }, { output: 'a', count: 1 })];
  expect(textOf(await ask(talk(results), 'none'))).toContain('1 file matches');
  expect(textOf(await ask(talk([user('run ls')], tools.slice(0, 1))))).toBe(
    'That needs the tool `bash`, which is disabled in this session.',
  );
});

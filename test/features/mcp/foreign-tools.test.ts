import { expect, test } from 'vitest';
import { outcomeOf } from '../../../src/features/mcp/call-result.js';
import { checkedSchema, type NamelessTool, namedTools, readTool } from '../../../src/features/mcp/foreign-tools.js';

function tool(server: string, name: string): NamelessTool {
  const read = readTool(server, { name, inputSchema: { type: 'object' } });
  if (typeof read === 'string') throw new Error(read);
  return { ...read, project: null };
}

test('names fit every provider, and twins are told apart whatever their order', () => {
  const tools = [tool('a', 'x.y'), tool('a', 'x_y'), tool('a', 'z'), tool('a', 'n'.repeat(90))];
  const names = namedTools(tools).map(({ name }) => name);
  expect(names.every((name) => /^[A-Za-z0-9_-]{1,64}$/.test(name))).toBe(true);
  expect(names).toEqual([
    expect.stringMatching(/^mcp__a__x_y_[0-9a-f]{6}$/),
    expect.stringMatching(/^mcp__a__x_y_[0-9a-f]{6}$/),
    'mcp__a__z',
    expect.stringMatching(/^mcp__a__n{49}_[0-9a-f]{6}$/),
  ]);
  expect(new Set(names).size).toBe(4);
  expect(namedTools(tools.toReversed()).map(({ name }) => name)).toEqual(names.toReversed());
});

test('descriptions lose what nobody sees, and what is too long', () => {
  const read = readTool('a', {
    name: 'x',
    description: `a\u200b\u{e0041}b\u001b[31m${'c'.repeat(4000)}`,
    inputSchema: { type: 'object' },
  });
  if (typeof read === 'string') throw new Error(read);
  expect(read.description.startsWith('ab[31mc')).toBe(true);
  expect(read.description.length).toBe(2048);
});

test.each([
  [{ inputSchema: { type: 'object' } }, 'a tool without a name'],
  [{ name: 'x', inputSchema: { type: 'array' } }, '"x": its input schema is not an object'],
  [
    { name: 'x', inputSchema: { type: 'object', title: 'x'.repeat(70_000) } },
    '"x": its input schema has more than 64 KiB',
  ],
  [
    { name: 'x', inputSchema: { type: 'object', a: JSON.parse(`${'['.repeat(40)}${']'.repeat(40)}`) as unknown } },
    '"x": its input schema is nested too deeply',
  ],
])('a tool is left out: %#', (listed, problem) => {
  expect(readTool('a', listed)).toBe(problem);
});

test('patterns of a stranger are not run; arguments of those names are kept', () => {
  expect(
    checkedSchema({
      type: 'object',
      properties: { pattern: { type: 'string', pattern: '(a+)+$', format: 'uri' } },
      patternProperties: { '(a+)+$': {} },
      additionalProperties: false,
    }),
  ).toEqual({ type: 'object', properties: { pattern: { type: 'string' } } });
});

test('a result is text: links and pictures are named, structure is given once', () => {
  const content = [
    { type: 'text', text: '{"a": 1}' },
    { type: 'image', mimeType: 'image/png', data: 'AAAA' },
    { type: 'resource_link', uri: 'file:///x', mimeType: 'text/plain' },
    { type: 'resource', resource: { uri: 'file:///y', mimeType: 'text/plain', text: 'inside' } },
  ];
  const lines = [
    '{"a": 1}',
    '[image image/png, 3 bytes]',
    '[resource s file:///x text/plain]',
    '[resource s file:///y text/plain]\ninside',
  ];
  expect(outcomeOf('s', { content, structuredContent: { a: 1 } }).envelope).toEqual({
    output: lines.join('\n'),
    untrusted: true,
  });
  expect(outcomeOf('s', { content }).attachments).toEqual([
    { name: 's image 2', bytes: Buffer.from([0, 0, 0]), mediaType: 'image/png' },
  ]);
  expect(outcomeOf('s', { content: [], structuredContent: [1] }).envelope).toEqual({ output: '[1]', untrusted: true });
  expect(outcomeOf('s', null).envelope).toEqual({ output: '', untrusted: true });
});

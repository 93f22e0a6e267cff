import { expect, test } from 'vitest';
import { type AnswerReader, createAnswerReader } from '../../../../src/kernel/providers/http/answer-reader.js';
import type { WireChunk } from '../../../../src/kernel/providers/wires/wire.js';
import { wires } from './http-rig.js';

const whole = { choices: [{ message: { content: 'Hello' }, finish_reason: 'stop' }] };
const delta = (content: string, finish: string | null = null): string =>
  `data: ${JSON.stringify({ choices: [{ delta: { content }, finish_reason: finish }] })}\n\n`;
const reader = (contentType = ''): AnswerReader =>
  createAnswerReader(wires['openai-chat'], undefined, { host: 'h', contentType });
const hello: readonly WireChunk[] = [
  { type: 'text', text: 'Hello' },
  { type: 'end', stop: 'stop' },
];

/** What a body means whose bytes arrive in these pieces. */
function read(pieces: readonly string[], contentType?: string): readonly WireChunk[] {
  const answer = reader(contentType);
  return [...pieces.flatMap((piece) => answer.push(Buffer.from(piece))), ...answer.end()];
}

test.each<[string, readonly string[], string]>([
  ['a stream', [delta('Hello', 'stop'), 'data: [DONE]\n\n'], 'text/event-stream'],
  ['a stream that is called JSON', [delta('Hello', 'stop')], 'application/json'],
  ['JSON that is called a stream', [JSON.stringify(whole)], 'text/event-stream'],
  ['JSON in pieces behind blanks', [' \n', '{"choices":', JSON.stringify(whole).slice('{"choices":'.length)], ''],
])('%s is read by its first bytes', (_name, pieces, contentType) => {
  expect(read(pieces, contentType)).toEqual(hello);
});

test('text that arrived together is one chunk', () => {
  expect(reader().push(Buffer.from(delta('Hel') + delta('lo')))).toEqual([{ type: 'text', text: 'Hello' }]);
});

test.each([
  ['a web page', '<!doctype html>', 'text/html', 'web page'],
  ['a page that only its type gives away', 'Please log in', 'text/html; charset=utf-8', 'web page'],
  ['JSON that is cut off', '{"choices":', 'application/json', 'not whole JSON'],
])('%s is a failure', (_name, text, contentType, message) => {
  expect(() => read([text], contentType)).toThrow(message);
});

test('an answer whose connection broke counts where everything had arrived', () => {
  const broken = new Error('reset');
  const complete = reader();
  complete.push(Buffer.from(delta('Hello', 'stop')));
  expect(complete.broken(broken)).toEqual([{ type: 'end', stop: 'stop' }]);
  const cut = reader();
  cut.push(Buffer.from(delta('Hel')));
  expect(() => cut.broken(broken)).toThrow(broken);
  expect(() => reader().broken(broken)).toThrow(broken);
});

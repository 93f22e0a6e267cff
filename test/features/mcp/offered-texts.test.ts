import { expect, test } from 'vitest';
import { promptArguments, promptMessage, readTexts } from '../../../src/features/mcp/offered-texts.js';

test('resources and prompts are read as far as anybody could use them', () => {
  const resources = [
    { uri: 'file:///a', name: 'A\u202e\nb', description: 'x'.repeat(500) },
    { uri: 'has space' },
    { uri: `x:${'y'.repeat(2000)}` },
    { uri: 'a\u0007b' },
    7,
  ];
  const prompts = [{ name: 'greet.me', arguments: [{ name: 'who', required: true }, 7] }, { title: 'nameless' }];
  const texts = readTexts('tried', resources, prompts);
  expect(texts.resources).toEqual([{ uri: 'file:///a', name: 'A…', about: `${'x'.repeat(199)}…` }]);
  expect(texts.prompts).toEqual([
    { command: 'mcp__tried__greet_me', ownName: 'greet.me', about: '', parameters: [{ name: 'who', required: true }] },
  ]);
});

test('words become arguments in the declared order, and the last one takes the rest', () => {
  const parameters = [
    { name: 'who', required: true },
    { name: 'how', required: false },
  ];
  const prompt = { command: 'c', ownName: 'c', about: '', parameters };
  expect(promptArguments(prompt, '"Ada L." very kindly so')).toEqual({ who: 'Ada L.', how: 'very kindly so' });
  expect(promptArguments(prompt, 'Ada')).toEqual({ who: 'Ada' });
  expect(promptArguments(prompt, '')).toBe('it needs who how');
  expect(promptArguments({ ...prompt, parameters: [] }, 'x')).toBe('it takes no arguments');
  expect(promptArguments({ ...prompt, parameters: [] }, '')).toEqual({});
});

test('the message of a prompt is all of its text', () => {
  const messages = [
    { role: 'user', content: { type: 'text', text: 'one\u0007' } },
    { role: 'assistant', content: { type: 'text', text: 'two' } },
    { role: 'user', content: { type: 'resource', resource: { uri: 'x', text: 'three' } } },
    { role: 'user', content: { type: 'image', data: 'AA==' } },
  ];
  expect(promptMessage({ messages })).toBe('one\n\n[as your answer:]\ntwo\n\nthree');
  expect(promptMessage({})).toBe('');
});

import { expect, test } from 'vitest';
import type { Question } from '../../../src/kernel/core/policy.js';
import { secretForms } from '../../../src/kernel/core/secrets/scanner.js';
import { createSecretGuard } from '../../../src/kernel/core/secrets/guard.js';
import { askAlways, calls, end, envelopes, noteTool, rig, scripted, text } from './harness.js';

const token = `ghp_${'aB3d'.repeat(9)}`;
const mark = '«secret:github_token#1»';
const secrets = (): ReturnType<typeof createSecretGuard> =>
  createSecretGuard({
    forms: secretForms(),
    keys: [],
    environment: [],
    fingerprint: (value) => `hash of ${value.length}`,
  });

test('the question, the record and the notice show the placeholder; policy and the tool get the value', async () => {
  const tool = noteTool();
  const judged: unknown[] = [];
  const policy: typeof askAlways = {
    assess: (call, cwd) => {
      judged.push(call.args.text);
      return askAlways
        .assess(call, cwd)
        .then((verdict) => ({ ...verdict, reasons: [`it writes ${String(call.args.text)}`] }));
    },
  };
  const { session, seen } = rig({
    provider: scripted([calls(['note', JSON.stringify({ text: `a ${mark}` })]), [text('done'), end()]]),
    tools: [tool],
    policy,
    interactive: true,
    secrets: secrets(),
  });
  const questions: Question[] = [];
  session.subscribe((event) => {
    if (event.type !== 'approval_requested') return;
    questions.push(event.question);
    session.answer(event.question.callId, { answer: 'once' });
  });
  await session.submit(`use ${token}`);
  expect([judged, tool.ran]).toEqual([[`a ${token}`], [`a ${token}`]]);
  expect(questions.map(({ argumentsText, call, verdict }) => [argumentsText, call.args, verdict.reasons])).toEqual([
    [JSON.stringify({ text: `a ${mark}` }), { text: `a ${mark}` }, [`it writes a ${mark}`]],
  ]);
  expect(envelopes(session.events())).toEqual([{ output: `noted a ${mark}` }]);
  expect(
    JSON.stringify([seen, session.events()], (name, value: unknown) => (name === 'tool' ? undefined : value)),
  ).not.toContain(token);
  expect(seen.filter((event) => event.type === 'notice').map(({ code, message }) => `${code} ${message}`)[0]).toBe(
    `secret_masked secret seen, masked ×1: ${mark} (disable with secrets.unmasked or secrets.mask)`,
  );
});

test('a call whose placeholder has no known value does not run, and the model is told to read again', async () => {
  const tool = noteTool();
  const { session } = rig({
    provider: scripted([calls(['note', JSON.stringify({ text: '«secret:jwt#7»' })]), [text('done'), end()]]),
    tools: [tool],
    secrets: secrets(),
  });
  await session.submit('go');
  expect(tool.ran).toEqual([]);
  expect(envelopes(session.events())).toEqual([
    {
      error: expect.stringContaining('Read the file that contains it again'),
      code: 'execution_failed',
      details: { reason: 'secret_unknown', placeholders: ['«secret:jwt#7»'] },
    },
  ]);
});

test('a queued message is masked in the queue', () => {
  const { session } = rig({ provider: scripted([]), secrets: secrets() });
  session.enqueue({ text: `use ${token}`, when: 'after' });
  expect(session.takeQueue()).toEqual([{ text: `use ${mark}`, when: 'after' }]);
});

import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { HookAnswer, Occasion } from '../../../src/kernel/core/hooks.js';
import { readHookFile } from '../../../src/features/hooks/listed-hooks.js';
import { allowedAsTheyAre, createHooks } from '../../../src/features/hooks/run-hooks.js';
import { createProcessRunner } from '../../../src/kernel/tools/process/runner.js';
import { at, type Json, type Path, placesOf, replaced } from '../json-places.js';

const dir = realpathSync(mkdtempSync(join(tmpdir(), 'agent-hook-faults-')));
afterAll(() => {
  rmSync(dir, { recursive: true, force: true });
});

const processes = createProcessRunner({ marker: { name: '_HOOK_FAULTS', value: '1' } });
const call: Occasion = { event: 'PreToolUse', call: { id: 'c1', tool: 'bash', args: { command: 'ls' } } };
const prompt: Occasion = { event: 'UserPromptSubmit', prompt: 'hello' };
const stop: Occasion = { event: 'Stop', again: false, text: '' };
const asked: Occasion = { event: 'PermissionRequest', call: { id: 'c1', tool: 'bash', args: {} } };
const done: Occasion = { ...call, event: 'PostToolUse', envelope: { output: 'ok' }, durationMs: 1 };

/** Runs a hook of one command, as a real process. */
async function run(occasion: Occasion, command: string, more: object = {}): Promise<HookAnswer> {
  const hooks = { [occasion.event]: [{ hooks: [{ type: 'command', command, timeout: 5, ...more }] }] };
  const from = { path: join(dir, 'hooks.json'), origin: 'user' as const, directory: dir, home: dir };
  const host = {
    processes,
    env: { PATH: process.env.PATH },
    protectedEnv: [],
    settingsFiles: [],
    post: () => Promise.reject(new Error('no hook here asks a server')),
    transcripts: { write: () => '' },
    mode: () => 'default',
    now: () => 1,
  };
  const opened = createHooks(
    allowedAsTheyAre(readHookFile({ hooks }, from).hooks, () => true),
    host,
  );
  const scene = { session: 's1', cwd: dir, prompt: '', events: () => [] };
  return await opened.ask(occasion, scene, new AbortController().signal);
}

let outputs = 0;

/** A command that prints exactly this. */
function printing(output: string | Buffer): string {
  const name = `output-${outputs++}`;
  writeFileSync(join(dir, name), output);
  return `cat ${name}`;
}

const deny =
  '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}';
const bom = '\uFEFF';

test.each<readonly [string, string | Buffer]>([
  ['alone', deny],
  ['behind a log line', `checking\n${deny}`],
  ['behind a byte order mark', `${bom}${deny}`],
  ['behind a colour', `\u001B[0m\u001B[32m${deny}\u001B[0m`],
  ['before a log line', `${deny}\nchecked {all} of it\n`],
  ['on the line of a log', `checking... ${deny} done`],
  ['over several lines', `checking {\n${JSON.stringify(JSON.parse(deny), null, 2)}\n`],
  ['behind log lines in JSON', `{"level":"info"}\n{"decision":"approve"}\n${deny}`],
  ['before an approval', `${deny}\n{"decision":"approve"}`],
  ['in a list', `[${deny}]`],
  ['in UTF-16', Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(deny, 'utf16le')])],
  ['among bytes that are no text', Buffer.concat([Buffer.from([0xc3, 0x28, 0xff, 0]), Buffer.from(deny)])],
  ['behind a flood of brackets', `${'['.repeat(100_000)}\n${deny}`],
  ['behind a quote that is not closed', `it is 5" wide\n${deny}`],
  ['with null beside it', deny.replace('}}', '},"continue":null,"systemMessage":null,"suppressOutput":null}')],
  ['in another case', deny.replace('"deny"', '" Deny "')],
  ['in the older word', deny.replace('"deny"', '"block"')],
  ['in the older form', '{"decision":"block","reason":"no"}'],
])('a denial counts %s', async (_how, output) => {
  const answer = await run(call, printing(output));
  expect([answer.decision, answer.reason, answer.messages]).toEqual(['deny', 'no', []]);
});

test.each([
  ['exits with 1', `echo '${deny}'; exit 1`, 'it ended with exit code 1'],
  ['is killed', `echo '${deny}'; kill -9 $$`, 'it was killed by SIGKILL'],
  ['never ends', `echo '${deny}'; exec sleep 60`, 'it took longer than 0.5 s'],
  ['prints without end', `echo '${deny}'; yes`, 'it printed more than 4 MiB'],
  ['complains without end', `echo '${deny}'; yes >&2`, 'it printed more than 4 MiB'],
])('a denial counts of a hook that then %s', async (_what, command, why) => {
  const answer = await run(call, command, { timeout: 0.5 });
  expect([answer.decision, answer.reason]).toEqual(['deny', 'no']);
  expect(answer.messages).toEqual([{ level: 'warn', message: expect.stringContaining(why) as string }]);
});

test.each([
  ['closes its input at once', `exec 0<&-; echo '${deny}'`],
  ['reads a part of it', `head -c 1 >/dev/null; echo '${deny}'`],
  ['leaves a child that holds the pipe', `sleep 60 & echo '${deny}'`],
])('a hook that %s is answered', async (_what, command) => {
  const long: Occasion = {
    ...call,
    call: { id: 'c1', tool: 'bash', args: { command: 'x'.repeat(2_000_000) } },
  };
  const answer = await run(long, command);
  await processes.killBackground();
  expect([answer.decision, answer.messages]).toEqual(['deny', []]);
});

test.each([
  ['python', "{'decision': 'block', 'reason': 'no'}"],
  ['a comma too many', '{"decision":"block",}'],
  ['a part', '{"hookSpecificOutput":{"permissionDecision":"deny"'],
  ['text around a part', 'checking {"decision": "block", "reason":'],
])('a decision that nobody can read (%s) holds back what it is about, and is reported', async (_what, output) => {
  for (const occasion of [call, prompt]) {
    const answer = await run(occasion, printing(output));
    expect([answer.decision, answer.messages.length]).toEqual(['deny', 1]);
  }
  const after = await run(stop, printing(output));
  expect([after.decision, after.messages.length]).toEqual(['none', 1]);
});

test.each([
  ['plain words', 'all is well {really}'],
  ['a log in JSON', '{"level":"info","message":"fine"}\n'],
  ['nothing', ''],
  ['brackets without end', '{'.repeat(200_000).replace(/^/, 'x ')],
])('%s are no answer, and say nothing', async (_what, output) => {
  const answer = await run(call, printing(output));
  expect([answer.decision, answer.messages]).toEqual(['none', []]);
});

test('plain output stays context, also where it quotes JSON', async () => {
  const text = 'package.json is {"name": "x", "version": "1"}';
  expect((await run(prompt, printing(text))).context).toEqual([text]);
});

const answers: readonly (readonly [Occasion, Json])[] = [
  [
    call,
    {
      continue: true,
      suppressOutput: true,
      systemMessage: 'psst',
      reason: 'older',
      decision: 'approve',
      hookSpecificOutput: {
        hookEventName: 'PreToolUse',
        permissionDecision: 'allow',
        permissionDecisionReason: 'fine',
        updatedInput: { command: 'ls -a' },
        additionalContext: 'ctx',
      },
    },
  ],
  [call, JSON.parse(deny) as Json],
  [prompt, { decision: 'block', reason: 'no', hookSpecificOutput: { additionalContext: 'ctx' } }],
  [stop, { decision: 'block', reason: 'more', continue: true, stopReason: 'x' }],
  [asked, { hookSpecificOutput: { decision: { behavior: 'allow', message: 'fine' } } }],
  [done, { decision: 'block', reason: 'no', hookSpecificOutput: { additionalContext: 'ctx', updatedToolOutput: 'y' } }],
];

const wrong: readonly Json[] = [null, true, 7, 'text', [], ['text'], { a: 1 }];
/** Fields that decide what happens. */
const deciding = /(?:^|\.)(?:decision|permissionDecision|behavior|updatedInput|hookSpecificOutput)$/;
/** Fields whose value is not looked at, or may be anything. */
const free = /(?:^|\.)(?:suppressOutput|hookEventName|updatedToolOutput|command)$|^$/;

test.each(answers.map(([occasion, valid]) => [occasion.event, occasion, valid] as const))(
  'one wrong field in the answer to %s allows nothing in silence',
  async (_event, occasion, valid) => {
    const typeOf = (value: Json): string => (Array.isArray(value) ? 'array' : typeof value);
    const cases = placesOf(valid).flatMap((path) =>
      wrong
        .filter(
          (value) => value !== null && (typeOf(value) !== typeOf(at(valid, path)) || deciding.test(path.join('.'))),
        )
        .map((value): readonly [Path, Json] => [path, value]),
    );
    for (const [path, value] of cases) {
      const name = path.join('.');
      const isObject = typeof value === 'object' && !Array.isArray(value);
      if (free.test(name) || (isObject && /(?:hookSpecificOutput|updatedInput)$/.test(name))) continue;
      const answer = await run(occasion, printing(JSON.stringify(replaced(valid, path, value))));
      const what = `${name} = ${JSON.stringify(value)}`;
      if (name === 'continue' || !deciding.test(name)) {
        // It costs no more than itself.
        const isTold = answer.messages.some(({ level }) => level === 'warn');
        expect(isTold, what).toBe(true);
      } else if (occasion.event === 'PreToolUse' || occasion.event === 'UserPromptSubmit')
        expect([answer.decision, answer.messages.some(({ level }) => level === 'warn')], what).toEqual(['deny', true]);
      else
        expect([answer.decision === 'allow', answer.messages.some(({ level }) => level === 'warn')], what).toEqual([
          false,
          true,
        ]);
    }
  },
  60_000,
);

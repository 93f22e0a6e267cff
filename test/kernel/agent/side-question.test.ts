import { expect, test } from 'vitest';
import type { ModelChunk, ModelRequest } from '../../../src/kernel/core/provider.js';
import { calls, end, kinds, noteTool, rig, scripted, text } from './harness.js';

const used: ModelChunk = {
  type: 'usage',
  usage: { input: 30, cacheRead: 900, cacheWrite: 0, output: 4 },
  costUsd: 0.002,
};
const never = new AbortController().signal;
const noText = (): void => undefined;

/** The messages of a request as a reader sees them, the last one first. */
function asked(request: ModelRequest | undefined): readonly string[] {
  const { messages } = request?.conversation ?? { messages: [] };
  return messages.map((message) => (message.role === 'user' ? message.content : message.text)).toReversed();
}

test('a side question is asked of the conversation without tools, recorded with what it used, and in no later request', async () => {
  const provider = scripted([
    [text('The port is 5433.'), end()],
    [text('54'), text('33.'), used, end()],
    [text('Done.'), end()],
  ]);
  const { session, seen, rows } = rig({ provider });
  await session.submit('read the port');
  const soFar: string[] = [];
  const onText = (given: string): void => void soFar.push(given);
  const before = seen.length;
  const ended = await session.askBeside('which port?', onText, never);
  const shown = seen.slice(before).flatMap((event) => (event.type === 'event' ? [event.event.kind] : [event.type]));
  await session.submit('go on');
  const [first, side, later] = provider.requests;
  expect(soFar).toEqual(['54', '5433.']);
  expect(shown).toEqual(['usage', 'side_question']);
  expect(side).toMatchObject({ toolChoice: 'none', conversation: { system: 'S', tools: first?.conversation.tools } });
  expect(asked(side)).toEqual([
    expect.stringMatching(/^\[A side question of the user\..*without tools.*\]\n\nwhich port\?$/s),
    'The port is 5433.',
    'read the port',
  ]);
  expect(asked(later)).toEqual(['go on', 'The port is 5433.', 'read the port']);
  expect(kinds(await rows())).toBe('system tools user assistant usage side_question user assistant');
  const usage = { input_tokens: 30, cache_read_tokens: 900, cost_usd: 0.002, purpose: 'side_question' };
  expect(ended).toMatchObject({
    status: 'answered',
    event: { content: 'which port?', data: { question: 'which port?', answer: '5433.', usage } },
  });
  expect((await rows()).find(({ kind }) => kind === 'usage')?.data).toMatchObject(usage);
});

/** The requests of a turn with a call, with or without a side question while the call runs and while text comes. */
async function requestsOfTurn(
  withQuestions: boolean,
): Promise<{ main: readonly ModelRequest[]; side: ModelRequest[] }> {
  const questions: Promise<unknown>[] = [];
  const ask = (): void => {
    if (withQuestions) questions.push(session.askBeside('what is it doing?', noText, never));
  };
  const main: ModelRequest[] = [];
  const side: ModelRequest[] = [];
  const answers = [
    [text('Writing.'), ...calls(['note', '{"text":"a"}', 'c1'])],
    [text('All '), text('done.'), end()],
  ];
  const { session } = rig({
    provider: {
      async *stream(request) {
        if (asked(request)[0]?.startsWith('[A side question') === true) {
          side.push(request);
          yield* [text('It writes.'), used, end()];
          return;
        }
        const answer = answers[main.length] ?? [];
        main.push(request);
        for (const chunk of answer) {
          yield chunk;
          if (chunk.type === 'text') {
            ask();
            await Promise.all(questions);
          }
        }
      },
    },
    tools: [
      noteTool(async () => {
        ask();
        await Promise.all(questions);
        return { envelope: { output: 'noted' }, summary: 'noted' };
      }),
    ],
  });
  await session.submit('write a');
  return { main, side };
}

test('side questions while a turn streams and while its call runs leave its requests as they would have been', async () => {
  const without = await requestsOfTurn(false);
  const { main, side } = await requestsOfTurn(true);
  const sent = (requests: readonly ModelRequest[]): string =>
    JSON.stringify(
      requests.map(({ conversation, toolChoice }) => ({ conversation, toolChoice })),
      (name, value: unknown) => (name === 'seq' || name === 'response_id' ? undefined : value),
    );
  expect(side).toHaveLength(4);
  expect(sent(main)).toBe(sent(without.main));
  const running = side.flatMap(({ conversation: { messages } }) =>
    messages.flatMap((message) =>
      message.role === 'assistant' ? message.calls.map(({ result }) => result.output) : [],
    ),
  );
  expect(running).toEqual([expect.stringContaining('still running'), '{"output":"noted"}', '{"output":"noted"}']);
});

test('a side question that fails says why and is not recorded; one that is closed keeps what had come', async () => {
  const provider = scripted([
    [{ type: 'fault', fault: { code: 'network', message: 'gone' } }],
    async function* () {
      yield text('Half');
      closed.abort();
      yield text(' of it');
    },
  ]);
  const closed = new AbortController();
  const { session, rows } = rig({ provider });
  expect(await session.askBeside('one?', noText, never)).toMatchObject({
    status: 'failed',
    fault: { message: 'gone' },
  });
  expect(kinds(session.events())).toBe('');
  expect(await session.askBeside('two?', noText, closed.signal)).toMatchObject({ status: 'interrupted' });
  expect(kinds(await rows())).toBe('system tools side_question');
  expect((await rows()).at(-1)?.data).toEqual({ question: 'two?', answer: 'Half', usage: null, interrupted: true });
});

test('a side question counts for the spend limit, and is not asked beyond it', async () => {
  const provider = scripted([[text('Yes.'), used, end()]]);
  const price = { input: 1, output: 10, cacheRead: 0, cacheWrite: 0 };
  const budget = { maxCostUsd: 0.003, price, maxOutputTokens: 4096, isEnforced: false };
  const { session } = rig({ provider, budget: () => budget });
  await session.askBeside('one?', noText, never);
  const second = await session.askBeside('two?', noText, never);
  expect(second).toMatchObject({ status: 'failed', fault: { code: 'max_cost' } });
  expect(provider.requests).toHaveLength(1);
});

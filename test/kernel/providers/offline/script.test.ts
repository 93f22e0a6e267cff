import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { Message } from '../../../../src/kernel/core/projection.js';
import type { ModelChunk } from '../../../../src/kernel/core/provider.js';
import { createOfflineProvider } from '../../../../src/kernel/providers/offline/offline.js';
import { readScript, shippedScripts } from '../../../../src/kernel/providers/offline/script.js';

const folder = mkdtempSync(join(tmpdir(), 'agent-script-'));
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

test('every conversation that comes with the program can be played', async () => {
  const files = readdirSync(new URL('../../../../config/offline', import.meta.url)).map((file) =>
    file.replace(/\.json$/, ''),
  );
  expect(shippedScripts.toSorted()).toEqual(files.toSorted());
  for (const name of shippedScripts) expect(await readScript(name, folder), name).toMatchObject({ ok: true });
});

interface Asked {
  readonly responses?: number;
  readonly toolChoice?: 'auto' | 'none';
  readonly signal?: AbortSignal;
  readonly sleeps?: number[];
}

async function play(script: unknown, asked: Asked = {}): Promise<readonly ModelChunk[]> {
  writeFileSync(join(folder, 's.json'), typeof script === 'string' ? script : JSON.stringify(script));
  const answers: readonly Message[] = Array.from({ length: asked.responses ?? 0 }, (_item, index) => ({
    role: 'assistant',
    seq: index + 4,
    text: 'x',
    data: null,
    calls: [],
  }));
  const provider = createOfflineProvider({
    cwd: folder,
    isInstalled: () => true,
    sleep: (delayMs) => {
      asked.sleeps?.push(delayMs);
      return Promise.resolve();
    },
  });
  const chunks: ModelChunk[] = [];
  const conversation = {
    system: '',
    tools: [],
    settings: { model_output_size: 32_768 },
    messages: [{ role: 'user', seq: 3, content: 'go' } as const, ...answers],
  };
  const request = {
    conversation,
    ref: { provider: 'offline', api: 'offline', model: 's.json' },
    toolChoice: asked.toolChoice ?? 'auto',
    signal: asked.signal ?? new AbortController().signal,
  } as const;
  for await (const chunk of provider.stream(request)) chunks.push(chunk);
  return chunks;
}

function brief(chunks: readonly ModelChunk[]): readonly string[] {
  return chunks.map((chunk) => {
    switch (chunk.type) {
      case 'text':
      case 'reasoning':
        return `${chunk.type} ${chunk.text}`;
      case 'tool_call':
        return `call ${chunk.call.id} ${chunk.call.name} ${chunk.call.arguments}`;
      case 'usage':
        return `usage ${chunk.usage.input} ${chunk.usage.output} ${String(chunk.costUsd)}`;
      case 'end':
        return `end ${chunk.stop}`;
      case 'fault':
        return `fault ${chunk.fault.code} ${chunk.fault.message}`;
      default:
        return chunk.type;
    }
  });
}

const twoTurns = {
  turns: [
    {
      text: 'Look.',
      reasoning: 'Hm.',
      calls: [
        { name: 'glob', arguments: { pattern: '*' } },
        { name: 'bash', raw: '{"comm', id: 'mine' },
      ],
      usage: { input_tokens: 7, output_tokens: 2, cost_usd: 0.5 },
    },
    { text: 'Done.', stop: 'length', delay_ms: 40 },
  ],
};

test('turn k answers the request that holds k responses', async () => {
  const sleeps: number[] = [];
  expect(brief(await play(twoTurns))).toEqual([
    'reasoning Hm.',
    'text Look.',
    'call script_0_0 glob {"pattern":"*"}',
    'call mine bash {"comm',
    'usage 7 2 0.5',
    'end tool',
  ]);
  expect(brief(await play(twoTurns, { responses: 1, sleeps }))).toEqual(['text Done.', 'usage 0 0 0', 'end length']);
  expect(brief(await play(twoTurns, { responses: 2 }))).toEqual(['text End of script.', 'usage 0 0 0', 'end stop']);
  expect(sleeps).toEqual([40]);
});

test('a script that loops never ends, and its ids stay unique', async () => {
  const looping = { loop: true, turns: [{ calls: [{ name: 'glob' }] }] };
  expect(brief(await play(looping, { responses: 41 }))).toEqual([
    'call script_41_0 glob {}',
    'usage 0 0 0',
    'end tool',
  ]);
});

test('where tools are forbidden calls come only from a turn that ignores that', async () => {
  const calls = [{ name: 'glob' }];
  expect(brief(await play({ turns: [{ text: 'Sum.', calls }] }, { toolChoice: 'none' }))).toEqual([
    'text Sum.',
    'usage 0 0 0',
    'end stop',
  ]);
  expect(brief(await play({ turns: [{ calls, ignore_tool_choice: true }] }, { toolChoice: 'none' }))).toEqual([
    'call script_0_0 glob {}',
    'usage 0 0 0',
    'end tool',
  ]);
});

test('a fault of the script ends the answer after its text', async () => {
  expect(
    brief(await play({ turns: [{ text: 'Half', fault: { code: 'stream_incomplete', message: 'cut' } }] })),
  ).toEqual(['text Half', 'fault stream_incomplete cut']);
});

test('an interrupted answer ends without an end', async () => {
  expect(await play(twoTurns, { signal: AbortSignal.abort() })).toEqual([]);
});

test.each([
  ['{"turns": [\n  {"text": "a",}\n]}', /^s\.json:2:\d+: not JSON$/],
  ['{}', /^s\.json: `turns` must be a list$/],
  ['{"turns":[{"txet":"a"}]}', /`turns\[0\]` has an unknown key `txet`; known: text, /],
  ['{"turns":[{},{"calls":[{"arguments":{}}]}]}', /`turns\[1\]\.calls\[0\]\.name` must be a string/],
  ['{"turns":[{"stop":"now"}]}', /`turns\[0\]\.stop` must be one of stop, /],
])('%s is refused with the place of the error', async (text, message) => {
  const [fault] = await play(text);
  expect(fault).toMatchObject({
    type: 'fault',
    fault: {
      code: 'bad_request',
      message: expect.stringMatching(message) as string,
      hint: expect.stringContaining('docs/offline-script.md') as string,
    },
  });
});

test('a script that is not there is named', async () => {
  const provider = createOfflineProvider({ cwd: folder, isInstalled: () => true, sleep: () => Promise.resolve() });
  const conversation = { system: '', tools: [], settings: { model_output_size: 1 }, messages: [] };
  const chunks: ModelChunk[] = [];
  for await (const chunk of provider.stream({
    conversation,
    ref: { provider: 'offline', api: 'offline', model: 'no/such.json' },
    toolChoice: 'auto',
    signal: new AbortController().signal,
  }))
    chunks.push(chunk);
  expect(brief(chunks)).toEqual(['fault bad_request cannot read the script no/such.json: no such file']);
});

import { afterAll, expect, test } from 'vitest';
import { type Conversation, type Message, project } from '../../../src/kernel/core/projection.js';
import type { ModelChunk } from '../../../src/kernel/core/provider.js';
import { conversation, testProvider } from './http/http-rig.js';
import { number } from './logs.js';
import { decode, type Decoded, type Entry, fold, recordings, wires } from './wires/recordings.js';
import { startVendor, type VendorServer, type VendorTurn } from './vendor-server.js';
import { vendorEndpoint, vendors } from './vendors.js';

const ask = conversation([{ role: 'user', seq: 3, content: 'go' }]);
const ls = { name: 'bash', arguments: '{"command":"ls -la"}' };
const pwd = { name: 'bash', arguments: '{"command":"pwd 😀"}' };

/** A session that ended while its second call was running, and goes on. */
const orphaned: Conversation = {
  ...ask,
  messages: project(
    number([
      { kind: 'system', content: 'S', data: null },
      { kind: 'tools', content: '', data: { tools: [], settings: { model_output_size: 1000 } } },
      { kind: 'user', content: 'go', data: null },
      ...['a', 'b', 'c'].map((id) => ({
        kind: 'tool_call',
        content: '',
        data: { id, type: 'function', function: ls, response_id: 'r4' },
      })),
      { kind: 'tool_started', content: null, data: { tool_call_id: 'a' } },
      {
        kind: 'tool_result',
        content: '',
        data: {
          tool_call_id: 'a',
          name: 'bash',
          output: '{"output":"x","exit_code":0}',
          success: true,
          duration_ms: 1,
        },
      },
      { kind: 'tool_started', content: null, data: { tool_call_id: 'b' } },
      { kind: 'user', content: 'go on', data: null },
    ]),
  ).messages,
};

interface Feature {
  readonly name: string;
  readonly turn: VendorTurn;
  readonly asked?: Conversation;
  readonly expected: Readonly<Record<string, unknown>>;
  /** True for a recording that shows it. */
  recorded(got: Decoded, entry: Entry): boolean;
}

const features: readonly Feature[] = [
  {
    name: 'text',
    turn: { text: 'Hello 😀 there', split: 1 },
    expected: { text: 'Hello 😀 there', calls: [], stop: 'stop' },
    recorded: (got) => got.text !== '' && got.fault === null,
  },
  {
    name: 'one call',
    turn: { text: 'I look.', calls: [ls] },
    expected: { text: 'I look.', calls: [ls], stop: 'tool' },
    recorded: (got) => got.calls.length === 1 && got.stop === 'tool',
  },
  {
    name: 'parallel calls',
    turn: { calls: [ls, pwd, ls] },
    expected: { calls: [ls, pwd, ls], stop: 'tool' },
    recorded: (got) => got.calls.length > 1,
  },
  {
    name: 'split arguments',
    turn: { calls: [pwd], split: 1 },
    expected: { calls: [pwd], stop: 'tool' },
    recorded: (got, { features: seen }) => seen.includes('split-args') && got.calls.length > 0,
  },
  {
    name: 'reasoning',
    turn: { reasoning: 'Let me think.', text: 'Done.', split: 4 },
    expected: { text: 'Done.', reasoning: 'Let me think.', stop: 'stop' },
    recorded: (got) => got.reasoning !== '',
  },
  {
    name: 'usage',
    turn: { text: 'x', usage: { input: 100, cached: 60, output: 7 } },
    expected: { usage: { input: 40, cacheRead: 60, cacheWrite: 0, output: 7 } },
    recorded: (got) => got.usage !== null,
  },
  {
    name: 'error in stream',
    turn: { text: 'He', error: 'the prompt was refused', calls: [ls] },
    expected: { calls: [], stop: null, fault: 'bad_request' },
    recorded: (got) => got.fault !== null,
  },
  {
    name: 'resume with orphan',
    turn: { text: 'On.' },
    asked: orphaned,
    expected: { text: 'On.', stop: 'stop' },
    recorded: () => false,
  },
];

const cells = new Map<string, string>();
const servers: VendorServer[] = [];
const all = recordings();

afterAll(async () => {
  for (const server of servers) await server.close();
  const head = ['provider', ...features.map(({ name }) => name)];
  const rows = Object.keys(vendors).map((vendor) => [
    vendor,
    ...features.map(({ name }) => cells.get(`${vendor} ${name}`) ?? 'FAILED'),
  ]);
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => row[column]?.length ?? 0)));
  console.log(
    [head, ...rows].map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')).join('\n'),
  );
  console.log(
    "S: against a scripted server that judges each request by the vendor's schema and pairing rules; " +
      '+N: and N recordings of that vendor show it.',
  );
});

const table = Object.keys(vendors).flatMap((vendor) =>
  features.map((feature) => [vendor, feature.name, feature] as const),
);

test.each(table)('%s: %s', async (vendor, name, feature) => {
  const habits = vendors[vendor]!;
  const server = await startVendor({ ...habits, wholeCalls: habits.wholeCalls === true && name !== 'split arguments' });
  servers.push(server);
  server.script(feature.turn);
  const { ref, endpoint } = vendorEndpoint(vendor, server.url);
  const provider = testProvider(endpoint, { maxRetries: 0 });
  const chunks: ModelChunk[] = [];
  for await (const chunk of provider.stream({
    conversation: feature.asked ?? ask,
    ref,
    toolChoice: 'auto',
    signal: new AbortController().signal,
  }))
    chunks.push(chunk);
  provider.close();
  const said = (type: 'text' | 'reasoning'): string =>
    chunks.map((chunk) => (chunk.type === type ? chunk.text : '')).join('');
  const seen: Readonly<Record<string, unknown>> = {
    text: said('text'),
    reasoning: said('reasoning'),
    calls: chunks.flatMap((chunk) =>
      chunk.type === 'tool_call' ? [{ name: chunk.call.name, arguments: chunk.call.arguments }] : [],
    ),
    stop: chunks.find((chunk) => chunk.type === 'end')?.stop ?? null,
    usage: chunks.find((chunk) => chunk.type === 'usage')?.usage,
    fault: chunks.find((chunk) => chunk.type === 'fault')?.fault.code,
  };
  expect(server.refusals).toEqual([]);
  expect(Object.fromEntries(Object.keys(feature.expected).map((key) => [key, seen[key]]))).toEqual(feature.expected);
  const shown = recordedOf(vendor, feature);
  cells.set(`${vendor} ${name}`, shown > 0 ? `S+${shown}` : 'S');
});

function recordedOf(vendor: string, feature: Feature): number {
  if (!all) return 0;
  const streams = all.entries.filter(
    ({ file, status }) => file.startsWith(`${vendor}/`) && file.endsWith('.sse') && status === 200,
  );
  return streams.filter((entry) => feature.recorded(fold(decode(wires[entry.api]!, [all.read(entry.file)])), entry))
    .length;
}

test('a scripted server refuses what its vendor refuses', async () => {
  const refused = async (
    vendor: string,
    messages: readonly Message[],
    more: Partial<Conversation> = {},
  ): Promise<readonly string[]> => {
    const server = await startVendor(vendors[vendor]!);
    servers.push(server);
    const { ref, endpoint } = vendorEndpoint(vendor, server.url);
    const provider = testProvider(
      {
        ...endpoint,
        quirks: {},
        extraBody: {
          messages: [
            {
              role: 'assistant',
              content: 'x',
              tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'bash', arguments: '{}' } }],
            },
          ],
        },
      },
      { maxRetries: 0 },
    );
    for await (const _chunk of provider.stream({
      conversation: { ...conversation(messages), ...more },
      ref,
      toolChoice: 'auto',
      signal: new AbortController().signal,
    }));
    provider.close();
    return server.refusals;
  };
  expect((await refused('mistral', [])).join()).toMatch(/not answered.*nine letters.*stream_options/s);
  expect((await refused('deepseek', [])).join()).toMatch(/reasoning_content is missing/);
});

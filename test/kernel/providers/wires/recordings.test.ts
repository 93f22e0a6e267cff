import { expect, test } from 'vitest';
import type { Json } from '../../../../src/kernel/core/json.js';
import { propertyRuns } from '../../../property-runs.js';
import { decode, type Decoded, type Entry, type Expected, fold, recordings, wires } from './recordings.js';

const all = recordings();
if (!all) console.log('Recordings: ../shared/fixtures/wire is absent, 145 recordings skipped');
const smallBytes = 8192;

type Fields = Readonly<Record<string, unknown>>;
const records = (value: unknown): readonly Fields[] => (Array.isArray(value) ? (value as readonly Fields[]) : []);
const word = (value: unknown): string => (typeof value === 'string' ? value : '');

const stopOf: Readonly<Record<string, string>> = {
  stop: 'stop',
  tool_calls: 'tool',
  length: 'length',
  end_turn: 'stop',
  tool_use: 'tool',
  max_tokens: 'length',
  refusal: 'refusal',
};

/** What the vendors' SDKs made of the stream, in our words; only what both know. */
function wanted({ fold: chat, sdk }: Expected): Partial<Record<keyof Decoded, unknown>> {
  if (chat) {
    // Snowflake gives no finish_reason at all; `[DONE]` after the usage report stands for it.
    return {
      text: chat.text ?? '',
      calls: chat.calls.filter((call) => call !== null),
      stop: stopOf[chat.finish ?? 'stop'],
    };
  }
  if (sdk?.content) {
    const calls = records(sdk.content).filter(({ type }) => type === 'tool_use');
    return {
      text: records(sdk.content)
        .map(({ text }) => word(text))
        .join(''),
      calls: calls.map(({ id, name }) => ({ id, name })),
      reasoning: records(sdk.content)
        .map(({ thinking }) => word(thinking))
        .join(''),
      stop: stopOf[sdk.stop_reason ?? ''],
      kept: records(sdk.content)
        .filter(({ type }) => type !== 'text' && type !== 'tool_use')
        .map(({ type }) => type),
    };
  }
  const output = records(sdk?.output);
  const calls = output
    .filter(({ type }) => type === 'function_call')
    .map((call) => ({ id: call.call_id, name: call.name, arguments: call.arguments }));
  return {
    text: output
      .flatMap(({ type, content }) => (type === 'message' ? records(content) : []))
      .map(({ text }) => word(text))
      .join(''),
    calls,
    stop: calls.length > 0 ? 'tool' : 'stop',
    kept: output
      .map(({ type }) => type)
      .filter((type) => !['message', 'function_call', 'apply_patch_call', 'local_shell_call'].includes(String(type))),
  };
}

function comparable(
  got: Decoded,
  want: Partial<Record<keyof Decoded, unknown>>,
  api: string,
): Partial<Record<keyof Decoded, unknown>> {
  const kept = records(got.kept)
    .map(({ type }) => type)
    .filter((type) => !String(type).startsWith('layout_'));
  const calls = got.calls.map(({ id, name, arguments: text }) =>
    api === 'messages' ? { id, name } : { id, name, arguments: text },
  );
  const comparison: Fields = { ...got, kept, calls };
  return Object.fromEntries(Object.keys(want).map((key) => [key, comparison[key]]));
}

/** Tokens as the vendor reports them, however they are split: what came in, what went out. */
function tokens({ fold: chat, sdk }: Expected): readonly [number, number] | null {
  if (chat) return chat.usage ? [Number(chat.usage.prompt_tokens), Number(chat.usage.completion_tokens)] : null;
  const usage = sdk?.usage;
  if (!usage) return null;
  const cached = sdk.content
    ? Number(usage.cache_read_input_tokens ?? 0) + Number(usage.cache_creation_input_tokens ?? 0)
    : 0;
  return [Number(usage.input_tokens) + cached, Number(usage.output_tokens)];
}

const streamed = Object.entries(all?.expected ?? {});
const known = streamed.filter(([, want]) => want.fold ?? want.sdk);

test.skipIf(!all)("every recorded stream decodes to what the vendors' own SDKs make of it", () => {
  for (const [file, want] of known) {
    const got = fold(decode(wires[want.api]!, [all!.read(file)]));
    expect(comparable(got, wanted(want), want.api), file).toEqual(wanted(want));
    expect(got.fault, file).toBeNull();
    if (want.fold && !file.includes('snowflake')) expect(got.reasoning, file).toBe(want.fold.reasoning ?? '');
    for (const call of want.sdk?.content?.filter(({ type }) => type === 'tool_use' && got.stop === 'tool') ?? []) {
      expect(JSON.parse(got.calls.find(({ id }) => id === call.id)?.arguments ?? ''), file).toEqual(call.input);
    }
  }
  console.log(`Recordings: ${known.length} streams decoded`);
});

test.skipIf(!all)('recorded usage is split without a token lost or counted twice', () => {
  let counted = 0;
  for (const [file, want] of known) {
    const usage = fold(decode(wires[want.api]!, [all!.read(file)])).usage?.usage;
    const total = tokens(want);
    if (!usage || !total) {
      expect(total, file).toBeNull();
      continue;
    }
    counted++;
    const reasoning = Number(
      (want.fold?.usage?.completion_tokens_details as Fields | undefined)?.reasoning_tokens ?? 0,
    );
    expect(usage.input + usage.cacheRead + usage.cacheWrite, file).toBe(total[0]);
    expect([total[1], total[1] + reasoning], file).toContain(usage.output);
  }
  console.log(`Recordings: ${counted} usage reports checked`);
});

test.skipIf(!all)("recorded streams that the vendors' SDKs give up on are read", () => {
  const read = (file: string): Decoded => fold(decode(wires[all!.expected[file]!.api]!, [all!.read(file)]));
  expect(read('anthropic/vercel__duplicate-message-start.sse')).toMatchObject({
    text: 'Hello, World!',
    stop: 'stop',
    fault: null,
  });
  expect(read('anthropic/vercel__spliced-message-start.sse')).toMatchObject({
    calls: [{ id: 'toolu_second', name: 'test-tool', arguments: '{"value":"Sparkle Day"}' }],
    kept: [{ type: 'thinking', thinking: 'Let me call the tool.', signature: 'sig-second' }],
    stop: 'tool',
    fault: null,
  });
  expect(read('anthropic/vercel__anthropic-tool-search-regex.1.sse')).toMatchObject({
    calls: [{ name: 'get_temp_data' }],
    stop: 'tool',
    fault: null,
  });
  expect(read('llamacpp/responses-2.sse')).toMatchObject({
    stop: 'tool',
    fault: null,
    usage: { usage: { input: 1, cacheRead: 1080, output: 600 } },
  });
  expect(read('openai/vercel__openai-error.1.sse')).toMatchObject({
    calls: [],
    stop: null,
    fault: { fault: { code: 'quota' }, retryable: false },
  });
  expect(streamed.length - known.length).toBe(5);
});

/** Byte positions to cut at: all of them in a small stream, 500 from a fixed seed in a larger one. Without FC_SCALE a
 * tenth of them, from the same seed. */
function cutPoints(bytes: number): readonly number[] {
  const all = bytes <= smallBytes ? bytes - 1 : 500;
  const tried = propertyRuns(all);
  if (tried === bytes - 1) return Array.from({ length: all }, (_unused, index) => index + 1);
  let seed = bytes;
  return Array.from({ length: tried }, () => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
    return 1 + (seed % (bytes - 1));
  });
}

test.skipIf(!all)(
  'a stream means the same wherever its bytes are split',
  () => {
    let cuts = 0;
    for (const [file, { api }] of streamed) {
      const bytes = all!.read(file);
      const wire = wires[api]!;
      const whole = JSON.stringify(decode(wire, [bytes]));
      expect(
        JSON.stringify(
          decode(
            wire,
            Array.from(bytes, (_byte, index) => bytes.subarray(index, index + 1)),
          ),
        ) === whole,
        `${file}, one byte at a time`,
      ).toBe(true);
      const wrong = cutPoints(bytes.length).filter(
        (at) => JSON.stringify(decode(wire, [bytes.subarray(0, at), bytes.subarray(at)])) !== whole,
      );
      expect(wrong, file).toEqual([]);
      cuts += cutPoints(bytes.length).length;
    }
    console.log(`Recordings: ${streamed.length} streams byte by byte, ${cuts} cut points tried`);
  },
  900_000,
);

/** What a whole answer says, read straight from its JSON. */
function plainReading(api: string, body: Fields): { readonly text: string; readonly names: readonly unknown[] } {
  if (api === 'chat') {
    const message = records(body.choices)[0]?.message as Fields;
    return {
      text: word(message.content),
      names: records(message.tool_calls).map((call) => (call.function as Fields).name),
    };
  }
  if (api === 'messages') {
    const blocks = records(body.content);
    return {
      text: blocks.map(({ text }) => word(text)).join(''),
      names: blocks.filter(({ type }) => type === 'tool_use').map(({ name }) => name),
    };
  }
  const output = records(body.output);
  return {
    text: output
      .filter(({ type }) => type === 'message')
      .flatMap(({ content }) => records(content))
      .map(({ text }) => word(text))
      .join(''),
    names: output.filter(({ type }) => type === 'function_call').map(({ name }) => name),
  };
}

test.skipIf(!all)('every recorded body is read whole and every recorded error is classified', () => {
  const others: readonly Entry[] = all!.entries.filter(({ file }) => !(file in all!.expected));
  for (const { file, api, status, features } of others) {
    const text = all!.read(file).toString();
    const wire = wires[api]!;
    if (status !== 200) {
      const vendor = (JSON.parse(text) as { error: { message: string } }).error.message;
      expect(wire.fault(status, text), file).toEqual({ code: 'bad_request', message: vendor, status });
      continue;
    }
    const body = JSON.parse(text) as Fields;
    const got = fold(wire.decodeBody(body as Json));
    const plain = plainReading(api, body);
    const refused = features.includes('stop:refusal');
    const cut = features.includes('finish:length');
    const stop = cut ? 'length' : plain.names.length > 0 ? 'tool' : 'stop';
    expect(
      { text: got.text, names: got.calls.map(({ name }) => name), stop: got.stop, fault: got.fault },
      file,
    ).toEqual({ ...plain, stop: refused ? 'refusal' : stop, fault: null });
    expect(got.usage, file).not.toBeNull();
    if (features.includes('reasoning') && api === 'chat') expect(got.reasoning.length, file).toBeGreaterThan(0);
  }
  expect(others.length).toBe(33);
  console.log(`Recordings: ${others.length} bodies and errors classified`);
});

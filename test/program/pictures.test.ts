import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { png } from '../features/attachments/samples.js';
import { startVendor, type VendorHabits, type VendorServer } from '../kernel/providers/vendor-server.js';
import { agent, lines, place, repl, script } from './inside.js';

type At = ReturnType<typeof place>;

async function vendor(habits: VendorHabits): Promise<VendorServer> {
  const server = await startVendor(habits);
  onTestFinished(() => server.close());
  return server;
}

/** Runs one turn against the server. */
async function run(at: At, server: VendorServer, api: VendorHabits['api'], args: readonly string[]) {
  const name = api === 'anthropic-messages' ? 'anthropic' : 'openai';
  const env = {
    OPENAI_API_KEY: 'test-key-openai-1',
    ANTHROPIC_API_KEY: 'test-key-anthropic-1',
    [`${name.toUpperCase()}_BASE_URL`]: server.url,
  };
  return await agent(at, ['-p', '-m', `${name}/m`, '--set', `provider_api=${api}`, ...args], { env });
}

const apis = ['openai-chat', 'openai-responses', 'anthropic-messages'] as const;
const shot = png(8, 4);
const base64 = shot.toString('base64');
const parts = {
  'openai-chat': {
    role: 'user',
    content: [
      { type: 'text', text: 'What is this?\n[shot.png 8x4]' },
      { type: 'image_url', image_url: { url: `data:image/png;base64,${base64}`, detail: 'auto' } },
    ],
  },
  'openai-responses': {
    type: 'message',
    role: 'user',
    content: [
      { type: 'input_text', text: 'What is this?\n[shot.png 8x4]' },
      { type: 'input_image', image_url: `data:image/png;base64,${base64}`, detail: 'auto' },
    ],
  },
  'anthropic-messages': {
    role: 'user',
    content: [
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: base64 } },
      { type: 'text', text: 'What is this?\n[shot.png 8x4]', cache_control: { type: 'ephemeral' } },
    ],
  },
} as const;

/** The messages of the newest request, without the system prompt. */
function sent(server: VendorServer): readonly unknown[] {
  const { messages, input } = (server.bodies.at(-1) ?? {}) as Record<string, readonly { role?: string }[] | undefined>;
  return (messages ?? input ?? []).filter(({ role }) => role !== 'system');
}

test.each(apis)('an image of the command line goes with the message on %s, and again on resume', async (api) => {
  const at = place();
  writeFileSync(join(at.work, 'shot.png'), shot);
  const server = await vendor({ api });
  const asked = await run(at, server, api, ['--image', 'shot.png', 'What is this?']);
  expect(asked).toMatchObject({ code: 0, stderr: '' });
  expect(sent(server)).toEqual([parts[api]]);
  await run(at, server, api, ['-c', 'And now?']);
  const [first] = sent(server);
  expect(JSON.stringify(first).replace(',"cache_control":{"type":"ephemeral"}', '')).toBe(
    JSON.stringify(parts[api]).replace(',"cache_control":{"type":"ephemeral"}', ''),
  );
  expect(server.refusals).toEqual([]);
});

test('a session with an image goes on with another wire', async () => {
  const at = place();
  writeFileSync(join(at.work, 'shot.png'), shot);
  const chat = await vendor({ api: 'openai-chat' });
  await run(at, chat, 'openai-chat', ['What is in @shot.png?']);
  expect(JSON.stringify(sent(chat))).toContain(`data:image/png;base64,${base64}`);
  const messages = await vendor({ api: 'anthropic-messages' });
  const gone = await run(at, messages, 'anthropic-messages', ['-c', 'And now?']);
  expect(gone).toMatchObject({ code: 0 });
  expect(messages.refusals).toEqual([]);
  expect(JSON.stringify(sent(messages))).toContain(base64);
});

test('what is not a picture, or is not there, is a usage error before anything is sent', async () => {
  const at = place({ 'notes.png': 'no picture' });
  const server = await vendor({ api: 'openai-chat' });
  for (const [file, said] of [
    ['notes.png', 'notes.png is not attached: it is not a PNG, JPEG, GIF, WebP or PDF.'],
    ['gone.png', 'There is no file gone.png.'],
  ] as const) {
    const refused = await run(at, server, 'openai-chat', ['--image', file, 'What is this?']);
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining(said) as string });
  }
  const mentioned = await run(at, server, 'openai-chat', ['Look at @notes.png and @gone.png']);
  expect(mentioned).toMatchObject({ code: 0, stderr: expect.stringContaining('notes.png is not attached') as string });
  expect(server.bodies).toHaveLength(1);
});

test('in a conversation a file that is not attached is said once', async () => {
  const at = place();
  writeFileSync(join(at.work, 'cut.png'), shot.subarray(0, 60));
  const { stdout } = await repl(
    at,
    ['-m', script(at, [{ text: 'I see none.' }])],
    [['Look at @cut.png', 'I see none.']],
  );
  expect(stdout.match(/cut\.png is not attached/g)).toHaveLength(1);
});

test('a message written in an earlier run says that its picture does not go with it', async () => {
  const at = place();
  const server = await vendor({ api: 'openai-chat' });
  const { code, stderr } = await run(at, server, 'openai-chat', ['What is [my shot.png 8x4] in [a 2x2]?']);
  expect(code).toBe(0);
  expect(stderr.match(/The image for .+? is gone/g)).toEqual(['The image for [my shot.png 8x4] is gone']);
});

test('a model that takes no pictures is told of them in a line', async () => {
  const at = place();
  writeFileSync(join(at.work, 'shot.png'), shot);
  const server = await vendor({ api: 'openai-chat' });
  mkdirSync(join(at.home, '.agent'));
  writeFileSync(join(at.home, '.agent/config.json'), '{"models":{"openai/m":{"vision":false}}}');
  const told = await run(at, server, 'openai-chat', ['--image', 'shot.png', 'What is this?']);
  expect(told).toMatchObject({ code: 0, stderr: '' });
  expect(sent(server)).toEqual([
    {
      role: 'user',
      content: 'What is this?\n[shot.png 8x4]\n\n[shot.png 8x4 is an image, which this model does not support]',
    },
  ]);
});

test('an image that the server refuses is taken out, the request is made once more, and the session goes on', async () => {
  const at = place();
  writeFileSync(join(at.work, 'shot.png'), shot);
  const server = await vendor({ api: 'anthropic-messages', refusesImages: true });
  const first = await run(at, server, 'anthropic-messages', ['--image', 'shot.png', 'What is this?']);
  expect(first).toMatchObject({
    code: 0,
    stdout: 'End of script.\n',
    stderr: expect.stringContaining('shot.png is not sent: m refused it (messages.0.content.0.image') as string,
  });
  expect(server.bodies).toHaveLength(2);
  const next = await run(at, server, 'anthropic-messages', ['-c', '--output-format', 'stream-json', 'Go on.']);
  expect(next).toMatchObject({ code: 0 });
  expect(lines(next.stdout).at(-1)).toMatchObject({ type: 'result', status: 'completed' });
  expect(server.bodies).toHaveLength(3);
});

const reading = { calls: [{ name: 'file_read', arguments: '{"path":"shot.png"}' }] };

test.each([
  [
    'openai-chat',
    [
      { role: 'tool', tool_call_id: 'C1', content: '{"output":"PNG image, 75 bytes"}' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'From the results above: shot.png' },
          { type: 'image_url', image_url: { url: `data:image/png;base64,${base64}`, detail: 'auto' } },
        ],
      },
    ],
  ],
  [
    'openai-responses',
    [
      {
        type: 'function_call_output',
        call_id: 'C1',
        output: [
          { type: 'input_text', text: '{"output":"PNG image, 75 bytes"}' },
          { type: 'input_image', image_url: `data:image/png;base64,${base64}`, detail: 'auto' },
        ],
      },
    ],
  ],
  [
    'anthropic-messages',
    [
      {
        role: 'user',
        content: [
          {
            type: 'tool_result',
            tool_use_id: 'C1',
            content: [
              { type: 'text', text: '{"output":"PNG image, 75 bytes"}' },
              { type: 'image', source: { type: 'base64', media_type: 'image/png', data: base64 } },
            ],
            cache_control: { type: 'ephemeral' },
          },
        ],
      },
    ],
  ],
] as const)('an image that file_read reads goes to the model on %s, after all results', async (api, expected) => {
  const at = place();
  writeFileSync(join(at.work, 'shot.png'), shot);
  const server = await vendor({ api });
  server.script(reading, { text: 'A grey box.' });
  expect(await run(at, server, api, ['Look at shot.png'])).toMatchObject({ code: 0, stdout: 'A grey box.\n' });
  expect(server.refusals).toEqual([]);
  const results = JSON.parse(
    JSON.stringify(sent(server).slice(-expected.length)).replace(/("(?:tool_)?(?:call|use)_id":)"[^"]+"/g, '$1"C1"'),
  ) as unknown;
  expect(results).toEqual(expected);
});

test('with tools as text the picture goes in the message with the results', async () => {
  const at = place();
  writeFileSync(join(at.work, 'shot.png'), shot);
  const server = await vendor({ api: 'openai-chat' });
  server.script({ text: '```json\n{"tool": "file_read", "args": {"path": "shot.png"}}\n```' }, { text: 'Grey.' });
  const done = await run(at, server, 'openai-chat', ['--set', 'tool_protocol=text', 'Look at shot.png']);
  expect(done).toMatchObject({ code: 0, stdout: 'Grey.\n' });
  expect(sent(server).at(-1)).toMatchObject({
    role: 'user',
    content: [{ type: 'text' }, parts['openai-chat'].content[1]],
  });
});

test('an export carries the pictures: a page shows them, JSON Lines bring them along', async () => {
  const at = place();
  writeFileSync(join(at.work, 'shot.png'), shot);
  const server = await vendor({ api: 'openai-chat' });
  server.script(reading, { text: 'A grey box.' });
  await run(at, server, 'openai-chat', ['--image', 'shot.png', 'Look.']);
  const [session] = JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as { id: string }[];
  const id = session?.id ?? '';
  const page = await agent(at, ['sessions', 'export', id, '--format', 'html']);
  expect(page.stdout.split(`src="data:image/png;base64,${base64}"`)).toHaveLength(3);
  const exported = await agent(at, ['sessions', 'export', id, '--format', 'jsonl']);
  expect(lines(exported.stdout).at(-1)).toMatchObject({ type: 'blob', base64 });
  const other = place();
  writeFileSync(join(other.work, 'session.jsonl'), exported.stdout);
  expect(await agent(other, ['sessions', 'import', 'session.jsonl'])).toMatchObject({ code: 0 });
  expect(await run(other, server, 'openai-chat', ['-r', id, 'And now?'])).toMatchObject({ code: 0 });
  expect(JSON.stringify(sent(server)).split(base64)).toHaveLength(3);
  const body = await agent(other, ['sessions', 'show', id, '--as', 'openai-chat']);
  expect(body.stdout.split(base64)).toHaveLength(3);
});

test('a redacted message takes its picture along', async () => {
  const at = place();
  writeFileSync(join(at.work, 'shot.png'), shot);
  const server = await vendor({ api: 'openai-chat' });
  await run(at, server, 'openai-chat', ['--image', 'shot.png', 'Look.']);
  const count = async () =>
    JSON.parse((await agent(at, ['sql', '--json', 'SELECT count(*) n FROM blobs'])).stdout) as unknown;
  expect(await count()).toEqual([{ n: 1 }]);
  const [{ session_id: id, seq } = { session_id: '', seq: 0 }] = JSON.parse(
    (await agent(at, ['sql', '--json', 'SELECT session_id, seq FROM v_attachments'])).stdout,
  ) as { session_id: string; seq: number }[];
  expect(await agent(at, ['redact', id, String(seq)])).toMatchObject({ code: 0 });
  expect(await count()).toEqual([{ n: 0 }]);
  expect(await run(at, server, 'openai-chat', ['-c', 'And now?'])).toMatchObject({ code: 0 });
});

import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
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
      { type: 'image_url', image_url: { url: `data:image/png;base64,${base64}` } },
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
          { type: 'image_url', image_url: { url: `data:image/png;base64,${base64}` } },
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

/** A web server on this machine. `seen`: the paths that were asked for. */
async function webServer(
  answers: RequestListener,
): Promise<{ readonly site: string; readonly seen: readonly string[] }> {
  const seen: string[] = [];
  const server = createServer((request, response) => {
    seen.push(request.url ?? '');
    answers(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { site: `127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}

interface UserEvent {
  readonly content: string;
  readonly data: { readonly attachments?: readonly { readonly name: string }[]; readonly typed?: string } | null;
}

async function exported(at: At): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const [{ id }] = JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as [{ readonly id: string }];
  const { stdout } = await agent(at, ['sessions', 'export', id, '--format', 'jsonl']);
  return lines(stdout).filter(({ type }) => type === 'event');
}

async function userEvents(at: At): Promise<readonly UserEvent[]> {
  return (await exported(at)).filter(({ kind }) => kind === 'user') as never;
}

const servesShot: RequestListener = (request, response) => {
  if (request.url === '/moved.png') response.writeHead(302, { location: '/shot.png' }).end();
  else if (request.url === '/page.png') response.writeHead(200, { 'content-type': 'text/html' }).end('<p>no</p>');
  else if (request.url === '/none.png') response.writeHead(404).end();
  else response.writeHead(200, { 'content-type': 'image/png' }).end(shot);
};

test('--image with an address loads the image where policy allows its host; the model gets its bytes', async () => {
  const at = place();
  const { site, seen } = await webServer(servesShot);
  const server = await vendor({ api: 'openai-chat' });
  const allowed = ['--set', `web.allow_local=["${site}"]`];
  const image = ['--image', `http://${site}/render?id=1`, '--image', `http://${site}/moved.png`];
  const ran = await run(at, server, 'openai-chat', [...allowed, ...image, 'What is this?']);
  expect([ran.code, ran.stderr]).toEqual([0, '']);
  expect(seen).toEqual(['/render?id=1', '/moved.png', '/shot.png']);
  expect(JSON.stringify(sent(server))).toContain(`data:image/png;base64,${base64}`);
  const [message] = await userEvents(at);
  expect(message?.content).toBe(`What is this?\n@http://${site}/render?id=1 @http://${site}/moved.png`);
  expect(message?.data?.attachments?.map(({ name }) => name)).toEqual(['render', 'shot.png']);
  const call = (await exported(at)).find(({ kind }) => kind === 'tool_call');
  expect(call).toMatchObject({ content: `web_fetch(url="http://${site}/render?id=1")`, data: { by: 'command' } });
  // What the model gets of a session that is resumed is the same.
  const again = await run(at, server, 'openai-chat', ['-c', 'And now?']);
  expect([again.code, JSON.stringify(sent(server)).includes(base64), seen.length]).toEqual([0, true, 3]);
});

test('a host that policy does not allow gets no request, and the message is not sent', async () => {
  const { site, seen } = await webServer(servesShot);
  const model = (at: At) => ['-p', '-m', script(at, [{ text: 'Done.' }])];
  const allowed = `web.allow_local=["${site}"]`;
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [['--image', `http://${site}/shot.png`], /is on this machine, a local network or reserved/],
    [['--approval', 'never', '--image', `http://${site}/shot.png`], /is on this machine, a local network or reserved/],
    [['--image', 'http://192.168.1.1/a.png'], /on this machine, a local network or reserved/],
    [['--image', 'http://169.254.169.254/a.png'], /cloud credentials service/],
    [['--image', 'https://a.example/shot.png'], /a\.example is new in this session/],
    [['--set', allowed, '--approval', 'mutating', '--image', `http://${site}/shot.png`], /nobody could be asked/],
    [['--set', allowed, '--disallowed-tools', 'web_fetch', '--image', `http://${site}/shot.png`], /not sent/],
    [['--image', 'https://user:secret@a.example/a.png'], /must not contain a user or password/],
  ];
  for (const [args, problem] of cases) {
    const ran = await agent(place(), [...model(place()), ...args, 'What is this?']);
    expect([args, ran.code, ran.stdout, ran.stderr]).toEqual([args, 1, '', expect.stringMatching(problem)]);
  }
  expect(seen).toEqual([]);
  // A prompt from elsewhere loads nothing.
  const piped = await agent(place(), [...model(place()), '--set', allowed, `see @http://${site}/shot.png`]);
  expect([piped.code, seen]).toEqual([0, []]);
});

test('an address that has no image is an error, and the message is not sent', async () => {
  const { site } = await webServer(servesShot);
  for (const [path, problem] of [
    ['page.png', /page\.png is not attached: it is not a PNG, JPEG, GIF or WebP/],
    ['none.png', /answered 404/],
  ] as const) {
    const at = place();
    const args = ['-p', '-m', script(at, [{ text: 'Done.' }]), '--set', `web.allow_local=["${site}"]`];
    const ran = await agent(at, [...args, '--image', `http://${site}/${path}`, 'x']);
    expect([path, ran.code, ran.stdout, ran.stderr]).toEqual([path, 1, '', expect.stringMatching(problem)]);
  }
});

test('in the REPL an address in a message is loaded after a prompt for its host', async () => {
  const at = place();
  const { site, seen } = await webServer(servesShot);
  const model = ['-m', script(at, [{ text: 'I see it.' }, { text: 'Again.' }])];
  await repl(
    at,
    [...model, '--set', 'web.allow_domains=[]'],
    [
      [`look at @http://${site}/shot.png.`, /on this machine, a local network or reserved[^]*and why/],
      ['no', /not sent/],
      [`look at @http://${site}/shot.png, please`, /on this machine, a local network or reserved[^]*and why/],
      ['yes', 'I see it.'],
    ],
  );
  expect(seen).toEqual(['/shot.png']);
  const [message, ...more] = await userEvents(at);
  expect(more).toEqual([]);
  expect(message).toMatchObject({
    content: `look at @http://${site}/shot.png, please`,
    data: { attachments: [{ name: 'shot.png' }] },
  });
});

test('in test mode nothing is loaded', async () => {
  const at = place();
  const { site, seen } = await webServer(servesShot);
  const args = ['-p', '--test', '-m', script(at, [{ text: 'Done.' }]), '--set', `web.allow_local=["${site}"]`];
  expect(await agent(at, [...args, '--image', `http://${site}/shot.png`, 'x'])).toMatchObject({ code: 0 });
  expect(seen).toEqual([]);
});

test('files, lines, folders and addresses of one message all go with it', async () => {
  const at = place({ 'a.txt': 'one\ntwo\n', 'src/b.txt': '' });
  const { site } = await webServer(servesShot);
  const args = ['-p', '-m', script(at, [{ text: 'Done.' }]), '--set', `web.allow_local=["${site}"]`];
  expect((await agent(at, [...args, '--image', `http://${site}/shot.png`, 'see @a.txt#L2 in @src/'])).code).toBe(0);
  const [message] = await userEvents(at);
  expect(message).toMatchObject({
    content: `see @a.txt#L2 in @src/\n@http://${site}/shot.png\n\nLine 2 of a.txt:\ntwo\n\nFiles in src/:\nsrc/b.txt`,
    data: { attachments: [{ name: 'shot.png' }] },
  });
});

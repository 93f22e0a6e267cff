import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pictureFacts } from '../../../src/features/attachments/image-header.js';
import { png, turnedJpeg } from '../../features/attachments/samples.js';
import { startVendor, type VendorHabits } from '../../kernel/providers/vendor-server.js';

// `npm run t:pictures`: the built program sends pictures of every bad kind to servers of all three wires. Prints what
// was sent, and fails where an image over the limits went out, or where a session cannot go on after any of them.
const binary = join(process.cwd(), 'bin/agent.js');
const apis = ['openai-chat', 'openai-responses', 'anthropic-messages'] as const;
type Api = (typeof apis)[number];

const cases: readonly (readonly [name: string, bytes: Buffer, taken: boolean])[] = [
  ['small', png(8, 4), true],
  ['9000px', png(9000, 300), true],
  ['noise', png(2000, 1500, { noise: true }), true],
  ['bomb60mp', png(8, 4, { claims: [10_000, 6000] }), false],
  ['liar49mp', png(8, 4, { claims: [7000, 7000] }), false],
  ['truncated', png(600, 400, { noise: true }).subarray(0, 9000), false],
  ['exif6', turnedJpeg(6), true],
];

interface Finished {
  readonly code: number | null;
  readonly ms: number;
}

function agent(root: string, api: Api, url: string, args: readonly string[]): Promise<Finished> {
  const name = api === 'anthropic-messages' ? 'anthropic' : 'openai';
  const keys = { OPENAI_API_KEY: 'test-key-openai-1', ANTHROPIC_API_KEY: 'test-key-anthropic-1' };
  const env = { PATH: process.env['PATH'], HOME: root, ...keys, [`${name.toUpperCase()}_BASE_URL`]: url };
  const started = performance.now();
  const all = [binary, '-p', '-m', `${name}/m`, '--set', `provider_api=${api}`, ...args];
  const child = spawn(process.execPath, all, { cwd: root, env, stdio: 'ignore' });
  return new Promise((resolve) => {
    child.once('close', (code) => {
      resolve({ code, ms: performance.now() - started });
    });
  });
}

/** The pictures of a request, decoded from its body. */
function picturesIn(body: unknown = {}): readonly Buffer[] {
  return [...JSON.stringify(body).matchAll(/(?:;base64,|"data":")([A-Za-z0-9+/=]{40,})"/g)].map(([, data = '']) =>
    Buffer.from(data, 'base64'),
  );
}

function isSmall(bytes: Buffer): boolean {
  const facts = pictureFacts(bytes);
  return facts !== null && Math.max(facts.width, facts.height) <= 1568 && bytes.length <= 1_500_000;
}

async function onWire(
  api: Api,
  habits: Partial<VendorHabits>,
): Promise<{ readonly bricked: number; readonly bad: number }> {
  const root = mkdtempSync(join(tmpdir(), 'agent-pictures-'));
  const server = await startVendor({ api, ...habits });
  let [bricked, wrong] = [0, 0];
  try {
    for (const [name, bytes, taken] of cases) {
      const folder = join(root, name);
      mkdirSync(folder);
      writeFileSync(join(folder, 'a.png'), bytes);
      const first = await agent(folder, api, server.url, ['Look at @a.png']);
      const sent = picturesIn(server.bodies.at(-1));
      const next = await agent(folder, api, server.url, ['-c', 'Go on.']);
      const goesOn = first.code === 0 && next.code === 0;
      if (!goesOn) bricked++;
      if (!sent.every(isSmall) || (habits.refusesImages !== true && sent.length !== (taken ? 1 : 0))) wrong++;
      const facts = sent.map((one) => {
        const { width = 0, height = 0 } = pictureFacts(one) ?? {};
        return `${width}x${height} ${one.length} B`;
      });
      console.log(
        `${api} ${name}: ${facts.join() || 'nothing sent'}, ${goesOn ? 'goes on' : 'BRICKED'}, ${first.ms.toFixed(0)} ms`,
      );
    }
  } finally {
    await server.close();
    rmSync(root, { recursive: true, force: true });
  }
  return { bricked, bad: wrong };
}

/** Thirty pictures and on in one session, which then goes on with another wire. */
async function many(): Promise<number> {
  const root = mkdtempSync(join(tmpdir(), 'agent-pictures-'));
  const [chat, messages] = [
    await startVendor({ api: 'openai-chat' }),
    await startVendor({ api: 'anthropic-messages' }),
  ];
  const counts: number[] = [];
  let failed = 0;
  for (let index = 1; index <= 33; index++) {
    writeFileSync(join(root, `p${index}.png`), png(8, 3 + index));
    const turn = index === 1 ? [] : ['-c'];
    // A turn brings one picture; the first ten bring theirs at once.
    if (index < 10) continue;
    const images = index === 10 ? [...Array(10).keys()].map((one) => `p${one + 1}.png`) : [`p${index}.png`];
    const args = [...(index === 10 ? [] : turn), ...images.flatMap((file) => ['--image', file]), `Picture ${index}`];
    if ((await agent(root, 'openai-chat', chat.url, args)).code !== 0) failed++;
    counts.push(picturesIn(chat.bodies.at(-1)).length);
  }
  const other = await agent(root, 'anthropic-messages', messages.url, ['-c', '-m', 'anthropic/m', 'And now?']);
  console.log(`pictures in the requests after 10, 11, … 33: ${counts.join(' ')}`);
  console.log(`resumed on another wire: exit ${other.code}, ${picturesIn(messages.bodies.at(-1)).length} pictures`);
  await chat.close();
  await messages.close();
  rmSync(root, { recursive: true, force: true });
  return failed + (other.code === 0 ? 0 : 1) + counts.filter((count) => count > 20).length;
}

async function main(): Promise<number> {
  let problems = 0;
  for (const api of apis) {
    const { bricked, bad } = await onWire(api, {});
    problems += bricked + bad;
  }
  const refused = await onWire('anthropic-messages', { refusesImages: true });
  problems += refused.bricked + (await many());
  console.log(`problems: ${problems}`);
  return problems === 0 ? 0 : 1;
}

process.exitCode = await main();

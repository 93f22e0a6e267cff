import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { beginSignIn, codeIn, type SignIn } from '../../src/commands/browser-sign-in.js';

/** A service that gives a key for the code `c0de` and the verifier of the challenge that it was shown. */
async function service(challenge: () => string): Promise<string> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const given = JSON.parse(Buffer.concat(chunks).toString()) as Record<string, string>;
      const proof = createHash('sha256')
        .update(given['code_verifier'] ?? '')
        .digest('base64url');
      const fits = given['code'] === 'c0de' && given['code_challenge_method'] === 'S256' && proof === challenge();
      response.writeHead(fits ? 200 : 403, { 'content-type': 'application/json' });
      response.end(
        JSON.stringify(fits ? { key: 'sk-signed-in', user_id: 'u' } : { error: { message: 'Invalid code' } }),
      );
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`;
}

async function begun(): Promise<{ readonly signIn: SignIn; readonly callback: string }> {
  let challenge = '';
  const keys = await service(() => challenge);
  const signIn = await beginSignIn({ page: 'https://openrouter.example/auth', keys }, {});
  onTestFinished(() => {
    signIn.close();
  });
  const asked = new URL(signIn.page).searchParams;
  challenge = asked.get('code_challenge') ?? '';
  expect(asked.get('code_challenge_method')).toBe('S256');
  return { signIn, callback: (asked.get('callback_url') ?? '').replace('localhost', '127.0.0.1') };
}

test('the browser brings the code, and the code brings the key', async () => {
  const { signIn, callback } = await begun();
  const coming = signIn.code(new AbortController().signal);
  expect((await fetch(`${callback}?code=c0de`)).status).toBe(200);
  expect(await coming).toBe('c0de');
  expect(await signIn.key('c0de')).toEqual({ ok: true, key: 'sk-signed-in' });
});

test('another path, another method and an empty code are no answer; a refusal is a sentence', async () => {
  const { signIn, callback } = await begun();
  const { origin } = new URL(callback);
  const stop = new AbortController();
  const coming = signIn.code(stop.signal);
  const answers = [
    await fetch(`${origin}/?code=evil`),
    await fetch(`${callback}?code=`),
    await fetch(`${callback}?code=evil`, { method: 'POST' }),
  ];
  expect(answers.map(({ status }) => status)).toEqual([404, 404, 404]);
  stop.abort();
  expect(await coming).toBe(null);
  expect(await signIn.key('evil')).toEqual({ ok: false, message: 'the sign-in was refused (403): Invalid code' });
});

test('two sign-ins share nothing that could be guessed', async () => {
  const [one, other] = [await begun(), await begun()];
  expect(new URL(one.callback).pathname).not.toBe(new URL(other.callback).pathname);
  expect(new URL(one.callback).pathname).toMatch(/^\/[0-9a-f]{32}$/);
});

test('a code is taken from what people copy', () => {
  expect([' c0de \n', 'http://localhost:1/abc?code=c0de&x=1', 'http://localhost:1/abc'].map(codeIn)).toEqual([
    'c0de',
    'c0de',
    '',
  ]);
});

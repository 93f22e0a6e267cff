import { parseJson } from '../kernel/core/json.js';
import { createHash, randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { isRecord } from '../kernel/core/json.js';
import { openTransport } from '../kernel/providers/http/transport.js';
import { readText } from '../kernel/providers/http/body.js';
import { httpFault } from '../kernel/providers/wires/fault.js';

/** The page that asks the user, and the address that gives out the key (`sign_in` of a preset). */
export interface SignInPlaces {
  readonly page: string;
  readonly keys: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

type SignedIn = { readonly ok: true; readonly key: string } | { readonly ok: false; readonly message: string };

/** A sign-in under way: `page` is to be opened in a browser on this machine. */
export interface SignIn {
  readonly page: string;
  /** Resolves with the code once the browser has come back; null where `signal` is aborted first. */
  code(signal: AbortSignal): Promise<string | null>;
  /** Exchanges a code for a key. */
  key(code: string): Promise<SignedIn>;
  close(): void;
}

const exchangeMs = 20_000;
const maxAnswerBytes = 65_536;

/** Begins a sign-in with PKCE (S256). The browser comes back to a listener on loopback, at a path that nobody can
 * guess: the service sends no state along. Source: OpenRouter, "OAuth PKCE", any port of localhost (read 2026-11). */
export async function beginSignIn(places: SignInPlaces, env: Environment): Promise<SignIn> {
  const verifier = randomBytes(32).toString('base64url');
  const path = `/${randomBytes(16).toString('hex')}`;
  const listener = await listen(path);
  const page = new URL(places.page);
  page.searchParams.set('callback_url', `http://localhost:${listener.port}${path}`);
  page.searchParams.set('code_challenge', createHash('sha256').update(verifier).digest('base64url'));
  page.searchParams.set('code_challenge_method', 'S256');
  return {
    page: page.href,
    code: listener.code,
    key: (code) => exchange(places.keys, { code, code_verifier: verifier, code_challenge_method: 'S256' }, env),
    close: listener.close,
  };
}

/** Returns the code in the text that the user has copied: the code itself, or the address that the browser was sent
 * to. */
export function codeIn(text: string): string {
  const trimmed = text.trim();
  return URL.canParse(trimmed) ? (new URL(trimmed).searchParams.get('code') ?? '') : trimmed;
}

const done = '<!doctype html><meta charset="utf-8"><title>agent</title><p>Signed in. You can close this page.';

async function listen(path: string): Promise<Pick<SignIn, 'code' | 'close'> & { readonly port: number }> {
  let onCode: (code: string) => void = () => undefined;
  const coming = new Promise<string>((resolve) => {
    onCode = resolve;
  });
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://localhost');
    const code = url.pathname === path ? url.searchParams.get('code') : null;
    if (request.method !== 'GET' || code === null || code === '') {
      response.writeHead(404).end();
      return;
    }
    const headers = { 'content-type': 'text/html', 'referrer-policy': 'no-referrer', connection: 'close' };
    response.writeHead(200, headers).end(done);
    onCode(code);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    code: (signal) =>
      new Promise((resolve) => {
        const give = (): void => {
          resolve(null);
        };
        if (signal.aborted) give();
        signal.addEventListener('abort', give, { once: true });
        void coming.then(resolve);
      }),
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

async function exchange(address: string, proof: Readonly<Record<string, string>>, env: Environment): Promise<SignedIn> {
  const transport = await openTransport(address, env);
  try {
    const answer = await transport.send({
      method: 'POST',
      url: address,
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify(proof),
      signal: AbortSignal.timeout(exchangeMs),
    });
    const text = await readText(answer, maxAnswerBytes);
    if (answer.status !== 200)
      return {
        ok: false,
        message: `the sign-in was refused (${answer.status}): ${httpFault(answer.status, text).message}`,
      };
    const body: unknown = parseJson(text);
    return isRecord(body) && typeof body.key === 'string' && body.key !== ''
      ? { ok: true, key: body.key }
      : { ok: false, message: 'the answer to the sign-in contains no key' };
  } catch (error) {
    return { ok: false, message: error instanceof Error ? error.message : String(error) };
  } finally {
    transport.close();
  }
}

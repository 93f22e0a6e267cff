import { isRecord, parseJson } from '../../kernel/core/json.js';
import { spelledLine } from '../../kernel/core/text.js';
import { createFetch } from '../../kernel/network/proxied.js';
import type { HookResult } from './hook-answers.js';
import type { Hook } from './listed-hooks.js';

type Environment = Readonly<Record<string, string | undefined>>;
type HttpHook = Pick<Hook, 'command' | 'headers' | 'allowedEnvVars' | 'timeoutMs'>;

/** Sends the input of a hook to its server. Never rejects; the body of the answer is the output. */
export type PostHook = (hook: HttpHook, input: string, signal: AbortSignal) => Promise<HookResult>;

export interface PosterOptions {
  readonly env: Environment;
  /** Names of variables that no hook gets (provider keys). */
  readonly protectedEnv: readonly string[];
  /** Aborted when the run ends: no request outlives it. */
  readonly closing: AbortSignal;
}

const maxBodyBytes = 4 * 1024 * 1024;

/** Makes what sends requests through the proxies of the environment. Redirects are not followed: they would carry the
 * conversation and the headers to an address that nobody trusted. Source: code.claude.com/docs/en/hooks, "HTTP response
 * handling", read 2026-11. */
export function createPoster({ env, protectedEnv, closing }: PosterOptions): PostHook {
  const send = createFetch(env);
  return async (hook, input, signal) => {
    const { command: url, timeoutMs } = hook;
    const headers = headersOf(hook, env, protectedEnv);
    if (typeof headers === 'string') return failure(headers);
    const limit = AbortSignal.timeout(timeoutMs);
    try {
      const response = await send(url, {
        method: 'POST',
        redirect: 'manual',
        headers: { 'content-type': 'application/json', ...headers },
        body: input,
        signal: AbortSignal.any([signal, closing, limit]),
      });
      return await resultOf(response);
    } catch (error) {
      if (limit.aborted) return failure(`it took longer than ${timeoutMs / 1000} s`);
      return failure(signal.aborted || closing.aborted ? 'it was cancelled' : `the request failed: ${reasonOf(error)}`);
    }
  };
}

function failure(reason: string, status?: number): HookResult {
  return { exit: null, failure: reason, stdout: '', stderr: '', ...(status === undefined ? {} : { status }) };
}

/** Returns the headers with the values of variables, or why there are none. Another variable is an empty text. */
function headersOf(
  { headers = {}, allowedEnvVars = [] }: HttpHook,
  env: Environment,
  protectedEnv: readonly string[],
): Readonly<Record<string, string>> | string {
  const refused = allowedEnvVars.find((name) => protectedEnv.includes(name));
  if (refused !== undefined) return `"allowedEnvVars" has ${refused}, the key of a provider, which no hook gets`;
  const filled = (text: string): string =>
    text.replaceAll(/\$(?:\{(\w+)\}|(\w+))/g, (_all, braced: string | undefined, plain: string | undefined) => {
      const name = braced ?? plain ?? '';
      return allowedEnvVars.includes(name) ? (env[name] ?? '') : '';
    });
  return Object.fromEntries(
    // A line break in a variable would begin another header.
    Object.entries(headers).map(([name, text]) => [name.toLowerCase(), filled(text).replaceAll(/[\r\n\0]/g, '')]),
  );
}

async function resultOf(response: Response): Promise<HookResult> {
  const { status } = response;
  if (status >= 300 && status < 400) {
    await response.body?.cancel();
    const to = response.headers.get('location') ?? 'an unknown address';
    return failure(`it answered ${status}, a redirect to ${spelledLine(to)}, which is not followed`, status);
  }
  if (!response.ok) {
    await response.body?.cancel();
    return failure(`it answered ${status}`, status);
  }
  const body = await boundedBody(response);
  if (body === null) return failure('it answered with more than 4 MiB', status);
  const type = response.headers.get('content-type') ?? '';
  // The page of a proxy or of a sign-in is no answer, and no context for the model.
  if (body.trim() !== '' && !/^(?:$|text\/plain\b)/i.test(type) && !isObject(body))
    return failure(`it answered with ${spelledLine(type)} that is not a JSON object`, status);
  return { exit: 0, failure: null, stdout: body, stderr: '', status };
}

async function boundedBody(response: Response): Promise<string | null> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > maxBodyBytes) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function isObject(text: string): boolean {
  try {
    return isRecord(parseJson(text));
  } catch {
    return false;
  }
}

/** `fetch failed` says nothing; its cause does. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  if (!(cause instanceof Error)) return String(cause);
  return cause.message || ('code' in cause ? String(cause.code) : cause.name);
}

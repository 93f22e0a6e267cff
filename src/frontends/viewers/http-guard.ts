import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { parseJson } from '../../kernel/core/json.js';

/** The codes of refused requests, by status. */
const codes = {
  400: 'bad_request',
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not_found',
  405: 'method_not_allowed',
  409: 'conflict',
  413: 'too_large',
  415: 'unsupported_media_type',
  421: 'wrong_host',
  500: 'internal',
  503: 'unavailable',
} as const;

export type RefusedStatus = keyof typeof codes;

/** A request that is refused. `message` says why, `hint` what to do. */
export class Refusal extends Error {
  readonly status: RefusedStatus;
  readonly code: string;
  readonly hint: string;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: RefusedStatus,
    message: string,
    {
      code = codes[status],
      hint = '',
      headers = {},
    }: { readonly code?: string; readonly hint?: string; readonly headers?: Readonly<Record<string, string>> } = {},
  ) {
    super(message);
    this.status = status;
    this.code = code;
    this.hint = hint;
    this.headers = headers;
  }
}

/** A program with the token, or a page with the cookie. */
export type Caller = 'api' | 'web';

/** Decides who is let in: programs that send the token, and pages of this server in a browser that was given it. */
export class HttpGuard {
  readonly token = randomBytes(24).toString('base64url');
  /** Path prefix of the pages in a browser. A cookie is sent to every port of this machine, but only below its path,
   * which no other server knows. */
  readonly path = `/${randomBytes(12).toString('base64url')}`;
  #port = 0;

  set port(port: number) {
    this.#port = port;
  }

  get origin(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Lets in only requests to the name we go by that no other site made: another site cannot make one, not even where
   * it has its name lead to this machine. */
  refuseStrangers({ headers }: IncomingMessage): void {
    const names = [`127.0.0.1:${this.#port}`, `localhost:${this.#port}`];
    if (!names.includes(headers.host ?? ''))
      throw new Refusal(421, 'This server answers only at 127.0.0.1.', { hint: `Use ${this.origin}.` });
    const { origin, 'sec-fetch-site': site } = headers;
    const isForeign = origin !== undefined && !names.some((name) => origin === `http://${name}`);
    if (isForeign || (site !== undefined && site !== 'same-origin' && site !== 'none'))
      throw new Refusal(403, 'Requests from other sites are refused.');
  }

  /** Returns who asks. Throws for anyone without the token. A browser says where a request that changes something comes
   * from; with the cookie alone, one that does not is refused. */
  callerOf(request: IncomingMessage): Caller {
    const [, bearer] = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '') ?? [];
    if (bearer !== undefined && this.isToken(bearer)) return 'api';
    if (!this.isToken(cookieOf(request, this.#cookie()))) throw unauthorized();
    if (request.method !== 'GET' && request.headers.origin === undefined)
      throw new Refusal(403, 'A page says where its request comes from.', {
        hint: 'Programs send the token as Authorization: Bearer.',
      });
    return 'web';
  }

  /** Returns the cookie of a browser that came with the token in its address. */
  cookieFor(given: string): string {
    if (!this.isToken(given)) throw unauthorized();
    return `${this.#cookie()}=${this.token}; HttpOnly; SameSite=Strict; Path=${this.path}/`;
  }

  isToken(given: string): boolean {
    const [one, other] = [Buffer.from(given), Buffer.from(this.token)];
    return one.length === other.length && timingSafeEqual(one, other);
  }

  /** All servers of this machine share one jar of cookies. */
  #cookie(): string {
    return `agent_${this.#port}`;
  }
}

function unauthorized(): Refusal {
  return new Refusal(401, 'The token is missing or wrong.', {
    hint: 'Programs send Authorization: Bearer with the token of agent serve --json; browsers open the address that agent serve printed.',
    headers: { 'www-authenticate': 'Bearer' },
  });
}

function cookieOf({ headers }: IncomingMessage, name: string): string {
  const parts = (headers.cookie ?? '').split(';').map((part) => part.trim());
  return parts.find((part) => part.startsWith(`${name}=`))?.slice(name.length + 1) ?? '';
}

/** Reads the JSON body of a request. Throws a `Refusal` for another content type, a body of more than `mostBytes`, and
 * text that is not JSON. */
export async function jsonBody(request: IncomingMessage, mostBytes: number): Promise<unknown> {
  const type = (request.headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase();
  if (type !== 'application/json')
    throw new Refusal(415, 'The body must be JSON.', { hint: 'Send Content-Type: application/json.' });
  const tooLarge = (): Refusal =>
    new Refusal(413, `The body is larger than ${mostBytes} bytes.`, { headers: { connection: 'close' } });
  if (Number(request.headers['content-length'] ?? 0) > mostBytes) throw tooLarge();
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > mostBytes) throw tooLarge();
    chunks.push(chunk);
  }
  try {
    return parseJson(new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks)));
  } catch {
    throw new Refusal(400, 'The body is not JSON.');
  }
}

/** Writes to a client that may read slowly. Resolves once there is room for more, or the client is gone. */
export async function writeSlowly(response: ServerResponse, text: string): Promise<void> {
  if (response.destroyed || response.write(text)) return;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      response.off('drain', done);
      response.off('close', done);
      resolve();
    };
    response.on('drain', done);
    response.on('close', done);
  });
}

/** Returns a whole number of a request. Throws for anything else. */
export function integerOf(
  name: string,
  value: string,
  { minimum = 0, maximum = Number.MAX_SAFE_INTEGER }: { readonly minimum?: number; readonly maximum?: number } = {},
): number {
  const number = Number(value);
  if (/^\d{1,15}$/.test(value) && number >= minimum && number <= maximum) return number;
  const range = maximum === Number.MAX_SAFE_INTEGER ? `from ${minimum}` : `from ${minimum} to ${maximum}`;
  throw new Refusal(400, `\`${name}\` must be a whole number ${range}, not \`${value}\`.`);
}

import { proxyFor, proxyName } from '../../../src/kernel/network/proxies.js';
import { Readable } from 'node:stream';
import { errorEnvelope, type Envelope } from '../../../src/kernel/core/envelope.js';
import type { Event } from '../../../src/kernel/core/event.js';
import type { ApprovalMode } from '../../../src/kernel/core/policy.js';
import type { Tool } from '../../../src/kernel/core/tool.js';
import { createPolicy } from '../../../src/kernel/permissions/permission-policy.js';
import type { PathFacts } from '../../../src/kernel/permissions/guarded-paths.js';
import { createRegistry } from '../../../src/kernel/tools/registry.js';
import { inToolset } from '../../../src/kernel/tools/builtin.js';
import { type WebOptions, webTools } from '../../../src/features/web/open-web.js';

/** An answer of the network that is made up. */
export interface Reply {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

interface SentRequest {
  /** The address that was dialled. */
  readonly to: string;
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
  readonly proxy: string | null;
}

export interface FakeWebOptions extends Partial<Omit<WebOptions, 'exchange' | 'resolve'>> {
  /** The answers for a name; a list of lists is one after the other. */
  readonly dns?: Readonly<Record<string, readonly string[] | readonly (readonly string[])[]>>;
  readonly replies?: readonly Reply[];
  /** What the person wrote before. */
  readonly said?: string;
  readonly events?: readonly Event[];
  readonly approval?: ApprovalMode;
}

export interface FakeWeb {
  readonly sent: SentRequest[];
  readonly tools: readonly Tool[];
  /** Makes a call as a session without a person does: what would be asked about is denied. */
  call(name: string, args: object, signal?: AbortSignal): Promise<Envelope>;
  /** The same with somebody who says yes to all. */
  yes(name: string, args: object, signal?: AbortSignal): Promise<Envelope>;
}

const noWorker = new URL('file:///no-worker');
const place: PathFacts = {
  home: '/h',
  workspace: '/w',
  ownPaths: [],
  readWhole: () => Promise.resolve('missing'),
  landing: () => Promise.resolve(null),
};

export function userSaid(text: string): Event {
  return { seq: 1, kind: 'user', content: text, data: null, createdAt: 0 };
}

/** The tools of the web on a network that is made up: names have the addresses given, and a dial asks for them as Node's
 * own does, for names alone and never for addresses that are written out. */
export function fakeWeb({
  dns = {},
  replies = [{}],
  said = '',
  events,
  approval,
  ...options
}: FakeWebOptions = {}): FakeWeb {
  const sent: SentRequest[] = [];
  const asked = new Map<string, number>();
  const resolve = (host: string): Promise<readonly string[]> => {
    const known = dns[host] ?? [];
    const turn = asked.get(host) ?? 0;
    asked.set(host, turn + 1);
    const answers = known.every((item) => typeof item === 'string')
      ? known
      : (known[Math.min(turn, known.length - 1)] ?? []);
    if (answers.length === 0) return Promise.reject(Object.assign(new Error('no such name'), { code: 'ENOTFOUND' }));
    return Promise.resolve(answers);
  };
  const made = webTools({
    allowDomains: [],
    allowLocal: [],
    api: [],
    proxy: 'env',
    env: {},
    modelOutputBytes: 32_768,
    worker: noWorker,
    now: () => 0,
    ...options,
    resolve,
    exchange: async (url, request, { lookup, env }) => {
      const named = request.allowsLocal ? null : proxyFor(url, env);
      const proxy = named && proxyName(named);
      const host = url.hostname.replace(/^\[|\]$/g, '');
      const isAddress = /^[\d.]+$/.test(host) || host.includes(':');
      const to = proxy ?? (isAddress ? host : await dialled(host, lookup));
      const { method, headers, body } = request;
      const {
        status = 200,
        headers: answer = { 'content-type': 'text/plain' },
        body: text = 'ok',
      } = replies[sent.length] ?? {};
      sent.push({ to, method, url: url.href, headers, body, proxy });
      return { status, headers: answer, body: Readable.from([Buffer.from(text)]), close: () => {} };
    },
  });
  const tools = inToolset({ name: 'web', on: false, about: '' }, made);
  const call = async (name: string, args: object, answer: 'yes' | 'no', signal = new AbortController().signal) => {
    const registry = createRegistry({ maxOutputBytes: 1_048_576, now: () => 0 });
    for (const tool of tools) registry.register(tool);
    const binding = await registry.bind({ name, arguments: JSON.stringify(args) });
    if (!binding.ok) return binding.error;
    const { bound } = binding;
    const log = (): readonly Event[] => events ?? [userSaid(said)];
    const session = { id: 's', events: log, recent: log };
    const policy = createPolicy({ approval: approval ?? 'dangerous', sandbox: 'off', facts: place, fsDeny: [] });
    const verdict = await policy.assess(bound, '/w', session);
    if (verdict.decision === 'deny' || (verdict.decision === 'ask' && answer === 'no'))
      return errorEnvelope('permission_denied', verdict.reasons.join('; '));
    const outcome = await bound.tool.run(bound.args, {
      cwd: '/w',
      session,
      signal,
      sandbox: 'off',
      limits: bound.limits,
      knownFiles: new Map(),
      eventOutput: () => null,
      progress: () => {},
    });
    return outcome.envelope;
  };
  return {
    sent,
    tools,
    call: (name, args, signal) => call(name, args, 'no', signal),
    yes: (name, args, signal) => call(name, args, 'yes', signal),
  };
}

type Lookup = Parameters<NonNullable<WebOptions['exchange']>>[2]['lookup'];

function dialled(host: string, lookup: Lookup): Promise<string> {
  return new Promise((resolve, reject) => {
    lookup(host, { all: true }, (error, addresses) => {
      if (error) reject(error);
      else resolve(Array.isArray(addresses) ? (addresses[0]?.address ?? '') : addresses);
    });
  });
}

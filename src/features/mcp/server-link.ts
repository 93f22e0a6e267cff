import { setTimeout as wait } from 'node:timers/promises';
import type { Transport, VersionNegotiationMode } from '@modelcontextprotocol/client';
import { isRecord } from '../../kernel/core/json.js';
import type { Log } from '../../kernel/core/runtime.js';
import { firstLine } from '../../kernel/core/text.js';
import { createFetch, proxyFailureIn } from '../../kernel/network/proxied.js';
import { isProxyVariable, NetworkSettingError } from '../../kernel/network/proxies.js';
import { createLastingProcess, type OpenCommand } from '../../kernel/tools/process/lasting-process.js';
import type { Exit } from '../../kernel/tools/process/start-child.js';
import type { ConfiguredServer, Way } from './configured-servers.js';
import { type McpConnection, type McpEventListener, openConnection, type Sdk } from './open-connection.js';
import { createForeignMessages, type ForeignMessages } from './foreign-messages.js';
import { visible } from './foreign-tools.js';
import { helperHeaders, HelperFailure } from './headers-helper.js';
import { createMessageFetch } from './http-messages.js';
import { LineTransport, type LineListener } from './line-transport.js';
import type { SignIns } from './access/kept-sign-ins.js';
import { readableAnswers } from './access/sign-in-answers.js';
import { KeptAccess, signInNeeded } from './access/sign-in.js';
import * as sdk from '@modelcontextprotocol/client';

/** The dependencies of a connection to a server. */
export interface ConnectionHost {
  readonly open: OpenCommand;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The version of this program, for servers. */
  readonly version: string;
  /** Milliseconds from a clock that never goes back. */
  readonly now: () => number;
  readonly log: Log;
  /** Takes the standard error of a server's program, in pieces; null at its end. */
  readonly keepErrors: (server: string, chunk: Buffer | null) => void;
  readonly signIns: SignIns;
}

/** One server, connected or not. A program is started again where it has ended, at most 3 times in 10 minutes. */
export interface Link {
  /** Rejects with a sentence for the user. */
  connect(heard: McpEventListener): Promise<McpConnection>;
  /** The end of the standard error of a program; '' for others. */
  lastWords(): string;
  /** Ends the connection, the program and everything it has started. */
  close(): Promise<void>;
}

/** The dependencies of a connection over HTTP. */
export type HttpHost = Pick<ConnectionHost, 'env' | 'open' | 'signIns' | 'version'>;
export type HttpWay = Extract<Way, { kind: 'http' }>;

/** The variables that a server gets: what programs need to run and to reach the network, and no keys. */
const passedVariables = new RegExp(
  [
    '^(?:HOME|LOGNAME|PATH|SHELL|TERM|USER|LANG|LC_[A-Z]+|TZ|TMPDIR|DISPLAY|WAYLAND_DISPLAY|SSH_AUTH_SOCK|XDG_[A-Z_]+)$',
    '^(?:NODE_EXTRA_CA_CERTS|SSL_CERT_(?:FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE)$',
    '^(?:NVM|VOLTA|PNPM|BUN|UV|PYENV|ASDF|MISE)_[A-Z_]*(?:HOME|DIR|ROOT|DATA)$',
    '^npm_config_(?!.*(?:auth|token|pass|key|otp))',
  ].join('|'),
  'i',
);
const retryDelaysMs = [1000, 2000];

/** Makes the link to a server. Nothing is loaded or started before `connect`. */
export function createLink(server: ConfiguredServer, way: Way, host: ConnectionHost): Link {
  return way.kind === 'stdio' ? stdioLink(server, way, host) : httpLink(server, way, host);
}

function stdioLink(server: ConfiguredServer, way: Extract<Way, { kind: 'stdio' }>, host: ConnectionHost): Link {
  let transport: LineTransport | null = null;
  const process = createLastingProcess(host.open, {
    command: {
      file: way.command,
      args: way.args,
      cwd: way.cwd,
      env: { ...passedOn(host.env), ...way.env },
      // The user chose this program; the sandbox is for commands of a model.
      sandbox: 'off',
    },
    onOutput: (chunk) => {
      transport?.take(chunk);
    },
    onErrors: (chunk) => {
      host.keepErrors(server.name, chunk);
    },
    onEnd: (exit) => {
      host.keepErrors(server.name, null);
      transport?.end(`it ended ${exitWords(exit)}`);
    },
    maxRestarts: 3,
    restartWindowMs: 600_000,
    now: host.now,
  });
  const heardLines = lineListener(server.name, host.log);
  const explain = (error: unknown): Error =>
    explained(error, { lastWords: process.lastWords(), junk: heardLines.firstJunk() });
  return {
    connect: async (heard) => {
      const connectAs = async (mode: VersionNegotiationMode, messages: ForeignMessages): Promise<McpConnection> => {
        transport = new LineTransport(process, messages, heardLines);
        return await openConnection(sdk, server, { transport, mode, version: host.version }, heard);
      };
      const messages = createForeignMessages(sdk, heard.onLeftOut);
      try {
        return await connectAs('legacy', messages);
      } catch (error) {
        if (!messages.refusesInitialize()) throw explain(error);
        try {
          return await connectAs({ pin: '2026-07-28' }, createForeignMessages(sdk, heard.onLeftOut));
        } catch (later) {
          // A server that does not know the newer protocol either has said why in its first answer.
          throw explain(isOfVersions(later) ? error : later);
        }
      }
    },
    lastWords: () => visible(process.lastWords()),
    close: async () => {
      await process.stop();
      host.keepErrors(server.name, null);
      transport?.end('the connection was closed');
    },
  };
}

function lineListener(server: string, log: Log): LineListener & { readonly firstJunk: () => string } {
  let count = 0;
  let first = '';
  return {
    onJunk: (line) => {
      first ||= firstLine(visible(line).trim(), 100);
      // A server that says nothing else must not fill the log.
      if (Number.isInteger(Math.log10(++count)))
        log({ at: 'mcp', message: 'lines that are not messages', server, count });
    },
    onThrown: (error) => {
      log({ at: 'mcp', message: 'a message was not handled', server, error: String(error) });
    },
    firstJunk: () => first,
  };
}

/** Makes the link to URL of an HTTP server. */
export function httpLink(server: ConfiguredServer, way: HttpWay, host: HttpHost): Link {
  const { url, headers, helper, signIn } = way;
  const { version, signIns } = host;
  const send = readableAnswers(createFetch(host.env));
  let transport: Transport | null = null;
  let closing = new AbortController();
  const told = (sdk: Sdk, error: unknown): Error => {
    const needed = signInNeeded(sdk, error);
    if (!needed) return explained(error, { lastWords: '', junk: '' });
    if (helper) return new Error('it rejected the headers of its headersHelper', { cause: error });
    // The next sign-in asks for what this one did not have.
    if (signIns.current(url)?.tokens && needed.scope !== '') signIns.want(url, needed.scope);
    return new Error(`it needs a sign-in: agent mcp login ${server.name}`, { cause: error });
  };
  const connectOnce = async (sdk: Sdk, heard: McpEventListener): Promise<McpConnection> => {
    await transport?.close();
    const printed = helper && (await helperHeaders(helper, { name: server.name, url }, host.open, passedOn(host.env)));
    const opened = new sdk.StreamableHTTPClientTransport(new URL(url), {
      requestInit: { headers: printed === undefined ? headers : withHeaders(headers, printed) },
      authProvider: new KeptAccess(sdk, { url, settings: signIn, signIns, send }),
      fetch: createMessageFetch(createForeignMessages(sdk, heard.onLeftOut), send),
    });
    transport = opened;
    const connection = await openConnection(sdk, server, { transport, mode: 'auto', version }, heard);
    const asked = async <T>(signal: AbortSignal | null, work: () => Promise<T>): Promise<T> =>
      await work().catch((error: unknown) => {
        const isForgotten = opened.sessionId !== undefined && forgetsSession(sdk, error);
        const isAnswer = error instanceof sdk.ProtocolError || signal?.aborted === true;
        // No message reports that a service has ended or forgotten this session, so the next call makes a new
        // connection.
        if (isForgotten || !isAnswer) heard.onClosed();
        throw isForgotten ? Object.assign(told(sdk, error), { isForgotten }) : isAnswer ? error : told(sdk, error);
      });
    return {
      ...connection,
      call: (tool, args, options) => asked(options.signal, () => connection.call(tool, args, options)),
      read: (uri, signal) => asked(signal, () => connection.read(uri, signal)),
      prompt: (name, args) => asked(null, () => connection.prompt(name, args)),
    };
  };
  return {
    connect: async (heard) => {
      closing = new AbortController();
      const { signal } = closing;
      for (const delayMs of [...retryDelaysMs, null]) {
        try {
          return await connectOnce(sdk, heard);
        } catch (error) {
          if (delayMs === null || signal.aborted || !mayPass(sdk, error)) throw told(sdk, error);
          await wait(delayMs, undefined, { signal });
        }
      }
      throw new Error('it was not connected');
    },
    lastWords: () => '',
    close: async () => {
      closing.abort();
      await transport?.close();
    },
  };
}

/** Names of headers are the same in any case. */
function withHeaders(
  headers: Readonly<Record<string, string>>,
  others: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const taken = new Set(Object.keys(others).map((name) => name.toLowerCase()));
  return {
    ...Object.fromEntries(Object.entries(headers).filter(([name]) => !taken.has(name.toLowerCase()))),
    ...others,
  };
}

/** Returns whether the server refused the request because of its session: by its status, or by its words where it has
 * none for that. What a tool says of a session of its own comes with another code. */
function forgetsSession(sdk: Sdk, error: unknown): boolean {
  const words =
    /session.*(?:not found|expired|invalid|unknown|terminated|does not exist)|(?:invalid|unknown|no valid|missing|expired) session/i;
  if (error instanceof sdk.SdkHttpError) {
    const { status, text } = error.data;
    return status === 404 || status === 410 || (status === 400 && words.test(typeof text === 'string' ? text : ''));
  }
  if (error instanceof sdk.ProtocolError)
    return [-32_000, -32_001, -32_600].includes(error.code) && words.test(error.message);
  return signInNeeded(sdk, error) !== null;
}

/** Returns whether another try may help: not where the server understood and refused. */
function mayPass(sdk: Sdk, error: unknown): boolean {
  if (signInNeeded(sdk, error) || error instanceof sdk.ProtocolError || isStoppedBefore(error)) return false;
  return !(error instanceof sdk.SdkHttpError && error.data.status >= 400 && error.data.status < 500);
}

/** Returns whether the request never came to the server: for a setting of the network, a proxy, or its headers. */
function isStoppedBefore(error: unknown): boolean {
  const status = proxyFailureIn(error)?.status ?? 0;
  return error instanceof NetworkSettingError || error instanceof HelperFailure || (status >= 400 && status < 500);
}

/** Makes a sentence of what went wrong: the words of the error and of its cause, and the last that the program said. */
function explained(error: unknown, { lastWords, junk }: { readonly lastWords: string; readonly junk: string }): Error {
  const said = visible(lastWords).trim().split('\n').slice(-3).join(' / ');
  const printed = junk === '' ? '' : `; it printed lines that are not messages, such as ${JSON.stringify(junk)}`;
  return new Error(
    `${firstLine(visible(wordsOf(error)), 300)}${said === '' ? printed : `; its output: ${said.slice(-500)}`}`,
    { cause: error },
  );
}

/** `fetch failed` says nothing without its cause. */
function wordsOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  const inner =
    cause instanceof AggregateError && cause.message === '' ? (cause.errors as readonly unknown[])[0] : cause;
  const words = inner instanceof Error ? wordsOf(inner) : '';
  // What went wrong is another thing than the version that was to be negotiated.
  if (words !== '' && isOfVersions(error)) return words;
  const own = ownWords(error);
  return own.includes(words) ? own : `${own}: ${words}`;
}

function ownWords(error: Error): string {
  if (error instanceof NetworkSettingError) return `${error.message}. ${error.hint}`;
  if (error.message === 'bad port') return 'the port is refused: it belongs to another protocol (bad port)';
  if (!('code' in error && error.code === 'REQUEST_TIMEOUT') || !('data' in error)) return error.message;
  const { timeout } = isRecord(error.data) ? error.data : {};
  return typeof timeout === 'number' ? `it did not answer within ${timeout / 1000} s` : error.message;
}

/** Returns whether the SDK speaks of the versions of the protocol, whatever went wrong. */
function isOfVersions(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERA_NEGOTIATION_FAILED';
}

function exitWords({ code, signal }: Exit): string {
  return signal === null ? `with exit code ${code ?? '?'}` : `by ${signal}`;
}

export function passedOn(env: ConnectionHost['env']): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) =>
      value !== undefined && (passedVariables.test(name) || isProxyVariable(name)) ? [[name, value] as const] : [],
    ),
  );
}

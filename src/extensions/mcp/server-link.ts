import { parseJson } from '../../core/json.js';
import { setTimeout as wait } from 'node:timers/promises';
import type { JSONRPCMessage, Transport, VersionNegotiationMode } from '@modelcontextprotocol/client';
import { isRecord } from '../../core/json.js';
import type { Log } from '../../core/runtime.js';
import { firstLine } from '../../core/text.js';
import { createLastingProcess, type LastingProcess, type OpenCommand } from '../../tools/process/lasting-process.js';
import type { ConfiguredServer, Way } from './configured-servers.js';
import { type Connection, type Heard, openConnection, type Sdk } from './open-connection.js';
import { visible } from './foreign-tools.js';
import type { SignIns } from './access/kept-sign-ins.js';
import { KeptAccess, signInNeeded } from './access/sign-in.js';

/** What a server is reached with. */
export interface ConnectionHost {
  readonly open: OpenCommand;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Our version, as servers are told it. */
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
  /** Rejects with a sentence for a person. */
  connect(heard: Heard): Promise<Connection>;
  /** The end of the standard error of a program; '' for others. */
  lastWords(): string;
  /** Ends the connection, the program and everything it has started. */
  close(): Promise<void>;
}

/** What a server is reached with over HTTP. */
export type HttpHost = Pick<ConnectionHost, 'signIns' | 'version'>;
export type HttpWay = Extract<Way, { kind: 'http' }>;

const passedVariables = ['HOME', 'LOGNAME', 'PATH', 'SHELL', 'TERM', 'USER', 'LANG', 'TMPDIR'];
const maxLineBytes = 16 * 1024 * 1024;
const retryDelaysMs = [1000, 2000];

/** Makes the link to a server. Nothing is loaded or started before `connect`. */
export function createLink(server: ConfiguredServer, way: Way, host: ConnectionHost): Link {
  return way.kind === 'stdio' ? stdioLink(server, way, host) : httpLink(server, way, host);
}

function stdioLink(server: ConfiguredServer, way: Extract<Way, { kind: 'stdio' }>, host: ConnectionHost): Link {
  let transport: LineTransport | null = null;
  let junkLines = 0;
  const process = createLastingProcess(host.open, {
    command: {
      file: way.command,
      args: way.args,
      cwd: way.cwd,
      env: { ...passedOn(host.env), ...way.env },
      // A person chose this program; the sandbox holds the commands of a model.
      sandbox: 'off',
    },
    onOutput: (chunk) => {
      transport?.take(chunk);
    },
    onErrors: (chunk) => {
      host.keepErrors(server.name, chunk);
    },
    onEnd: () => {
      host.keepErrors(server.name, null);
      transport?.onclose?.();
    },
    maxRestarts: 3,
    restartWindowMs: 600_000,
    now: host.now,
  });
  const connectAs = async (sdk: Sdk, mode: VersionNegotiationMode, heard: Heard): Promise<Connection> => {
    transport = new LineTransport(process, sdk, () => {
      // A server that says nothing else must not fill the log.
      if (Number.isInteger(Math.log10(++junkLines)))
        host.log({ at: 'mcp', message: 'lines that are no messages', server: server.name, count: junkLines });
    });
    return await openConnection(sdk, server, { transport, mode, version: host.version }, heard);
  };
  return {
    connect: async (heard) => {
      const sdk = await import('@modelcontextprotocol/client');
      try {
        return await connectAs(sdk, 'legacy', heard);
      } catch (error) {
        if (!(error instanceof sdk.ProtocolError)) throw explained(error, process.lastWords());
      }
      try {
        return await connectAs(sdk, { pin: '2026-07-28' }, heard);
      } catch (error) {
        throw explained(error, process.lastWords());
      }
    },
    lastWords: () => visible(process.lastWords()),
    close: async () => {
      await process.stop();
      host.keepErrors(server.name, null);
      // Whoever waits for an answer hears that there is none.
      transport?.onclose?.();
    },
  };
}

/** Makes the link to a server that is reached over HTTP. */
export function httpLink(server: ConfiguredServer, way: HttpWay, host: HttpHost): Link {
  const { url, headers, signIn } = way;
  const { version, signIns } = host;
  let transport: Transport | null = null;
  let closing = new AbortController();
  const told = (sdk: Sdk, error: unknown): Error => {
    const needed = signInNeeded(sdk, error);
    if (!needed) return explained(error, '');
    // The next sign-in asks for what this one did not have.
    if (signIns.current(url)?.tokens && needed.scope !== '') signIns.want(url, needed.scope);
    return new Error(`it needs a sign-in: agent mcp login ${server.name}`, { cause: error });
  };
  const connectOnce = async (sdk: Sdk, heard: Heard): Promise<Connection> => {
    await transport?.close();
    transport = new sdk.StreamableHTTPClientTransport(new URL(url), {
      requestInit: { headers },
      authProvider: new KeptAccess(sdk, { url, settings: signIn, signIns }),
    });
    const connection = await openConnection(sdk, server, { transport, mode: 'auto', version }, heard);
    return {
      ...connection,
      call: async (tool, args, options) => {
        try {
          return await connection.call(tool, args, options);
        } catch (error) {
          // Nothing tells that a service has ended or forgotten us: the next call makes a new connection.
          if (!options.signal.aborted && !(error instanceof sdk.ProtocolError)) heard.onClosed();
          throw signInNeeded(sdk, error) ? told(sdk, error) : error;
        }
      },
    };
  };
  return {
    connect: async (heard) => {
      const sdk = await import('@modelcontextprotocol/client');
      closing = new AbortController();
      const { signal } = closing;
      for (const delayMs of retryDelaysMs) {
        try {
          return await connectOnce(sdk, heard);
        } catch (error) {
          if (signal.aborted || !mayPass(sdk, error)) throw told(sdk, error);
          await wait(delayMs, undefined, { signal });
        }
      }
      try {
        return await connectOnce(sdk, heard);
      } catch (error) {
        throw told(sdk, error);
      }
    },
    lastWords: () => '',
    close: async () => {
      closing.abort();
      await transport?.close();
    },
  };
}

/** Returns whether another try may help: not where the server understood and refused. */
function mayPass(sdk: Sdk, error: unknown): boolean {
  if (signInNeeded(sdk, error) || error instanceof sdk.ProtocolError) return false;
  return !(error instanceof sdk.SdkHttpError && error.data.status >= 400 && error.data.status < 500);
}

/** Makes a sentence of what went wrong: the cause, and the last thing that the program said. */
function explained(error: unknown, lastWords: string): Error {
  const message = error instanceof Error ? error.message : String(error);
  const said = visible(lastWords).trim().split('\n').slice(-3).join(' / ');
  return new Error(`${firstLine(visible(message), 300)}${said === '' ? '' : `; it said: ${said.slice(-500)}`}`, {
    cause: error,
  });
}

function passedOn(env: ConnectionHost['env']): Readonly<Record<string, string>> {
  return Object.fromEntries(
    passedVariables.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]] as const])),
  );
}

/** Messages, one a line, over a process that stays. Lines that are none are told and dropped. */
class LineTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly #process: LastingProcess;
  readonly #sdk: Sdk;
  readonly #onJunk: () => void;
  #parts: Buffer[] = [];
  #bytes = 0;
  /** A line that was too long is dropped up to its end. */
  #isDropping = false;

  constructor(process: LastingProcess, sdk: Sdk, onJunk: () => void) {
    this.#process = process;
    this.#sdk = sdk;
    this.#onJunk = onJunk;
  }

  async start(): Promise<void> {
    const started = await this.#process.start();
    if (!started.started)
      throw new Error(started.error === 'ENOENT' ? 'the command was not found (ENOENT)' : started.error);
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (!(await this.#process.write(`${JSON.stringify(message)}\n`))) throw new Error('the server does not run');
  }

  async close(): Promise<void> {
    await this.#process.stop();
    this.onclose?.();
  }

  take(chunk: Buffer): void {
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      this.#add(chunk.subarray(from, end));
      this.#endLine();
      from = end + 1;
    }
    this.#add(chunk.subarray(from));
  }

  #add(part: Buffer): void {
    if (this.#isDropping || part.length === 0) return;
    // What cannot become a message is not kept, however long it is.
    this.#isDropping = this.#bytes === 0 && part[0] !== 0x7b;
    if (this.#isDropping) return;
    this.#bytes += part.length;
    this.#parts.push(part);
    if (this.#bytes <= maxLineBytes) return;
    this.#isDropping = true;
    this.#parts = [];
  }

  #endLine(): void {
    const line = this.#isDropping ? null : Buffer.concat(this.#parts);
    this.#parts = [];
    this.#bytes = 0;
    this.#isDropping = false;
    const message = line === null ? null : this.#parsed(line);
    if (message) this.onmessage?.(message);
    else if (line === null || line.length > 0) this.#onJunk();
  }

  #parsed(line: Buffer): JSONRPCMessage | null {
    try {
      const value: unknown = parseJson(line.toString('utf8'));
      return isRecord(value) ? this.#sdk.parseJSONRPCMessage(value) : null;
    } catch {
      return null;
    }
  }
}

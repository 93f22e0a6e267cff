import { PassThrough } from 'node:stream';
import {
  createMessageConnection,
  type MessageConnection,
  StreamMessageReader,
  StreamMessageWriter,
} from 'vscode-jsonrpc/node';
import { isRecord, type Json } from '../../kernel/core/json.js';
import { firstLine } from '../../kernel/core/text.js';
import type { ChildCommand, NotStarted } from '../../kernel/tools/process/start-child.js';
import type { OpenCommand, OpenProcess } from '../../kernel/tools/process/lasting-process.js';
import type { Sandbox } from '../../kernel/core/tool.js';
import { createFrameGuard } from './frame-guard.js';

/** An open connection to a running language server. Nothing in it throws because of what the server does. */
export interface LanguageConnection {
  /** Resolves with null where the server refuses or has ended, and once `over` has resolved. */
  request(method: string, params: unknown, over: Promise<unknown>): Promise<unknown>;
  notify(method: string, params: unknown): void;
  /** Ends the server and everything it has started. */
  close(): Promise<void>;
}

export interface ConnectionListener {
  /** Returns the answer to a request of the server. */
  readonly onRequest: (method: string, params: unknown) => Json;
  readonly onNotification: (method: string, params: unknown) => void;
  /** It ended, or writes what is no message. Called once. */
  readonly onEnd: (why: string) => void;
}

/** Starts a language server and connects to its standard streams. */
export async function connectServer(
  open: OpenCommand,
  command: ChildCommand & { readonly sandbox: Sandbox },
  listener: ConnectionListener,
): Promise<LanguageConnection | NotStarted> {
  const child = await open(command);
  return child.started ? connectTo(child, listener) : child;
}

function connectTo(child: OpenProcess, listener: ConnectionListener): LanguageConnection {
  const output = new PassThrough();
  const connection = createMessageConnection(new StreamMessageReader(output), new StreamMessageWriter(child.input));
  let isOpen = true;
  let resolveEnd = (): void => undefined;
  const ended = new Promise<null>((resolve) => {
    resolveEnd = () => {
      resolve(null);
    };
  });
  const release = async (): Promise<void> => {
    isOpen = false;
    resolveEnd();
    connection.dispose();
    await child.end();
    output.destroy();
  };
  const end = (why: string): void => {
    if (!isOpen) return;
    void release();
    listener.onEnd(why);
  };
  const guard = createFrameGuard(() => performance.now());
  child.output.on('data', (chunk: Buffer) => {
    if (!isOpen) return;
    const problem = guard.check(chunk);
    if (problem === null) output.write(chunk);
    else end(problem);
  });
  for (const stream of [child.output, child.errors, output]) stream.on('error', () => undefined);
  child.output.resume();
  let printed = '';
  child.errors.on('data', (chunk: Buffer) => {
    printed = (printed + chunk.toString()).slice(0, maxPrinted);
  });
  void child.exited.then(({ code, signal }) => {
    const said = complaint(printed);
    end(`it ended with ${signal ?? `exit code ${code ?? 'unknown'}`}${said === '' ? '' : `: ${said}`}`);
  });
  listen(connection, listener);
  return {
    request: async (method, params, over) => {
      if (!isOpen) return null;
      const answer = connection.sendRequest(method, params).catch(() => null);
      return await Promise.race([answer, ended, over.then(() => null)]);
    },
    notify: (method, params) => {
      if (isOpen) connection.sendNotification(method, params).catch(() => undefined);
    },
    close: async () => {
      if (isOpen) await release();
    },
  };
}

/** The most characters of standard error that are kept. */
const maxPrinted = 8192;

/** Returns the line in which a program says why it ended: the first one with an error, else the last one. */
function complaint(printed: string): string {
  const lines = printed.split(/\r?\n/).filter((line) => line.trim() !== '');
  const line = lines.find((one) => /^\W*(?:error|fatal|panic)/i.test(one)) ?? lines.at(-1) ?? '';
  return firstLine(line.trim(), 200);
}

function listen(connection: MessageConnection, { onRequest, onNotification }: ConnectionListener): void {
  connection.onError(() => undefined);
  connection.onUnhandledNotification(() => undefined);
  connection.onRequest((method, params) => onRequest(method, params));
  connection.onNotification((method, params) => {
    onNotification(method, params);
  });
  connection.listen();
}

/** Returns the answer to a request of a server: it gets its settings, and nothing that it wants to change is changed. */
export function answerServer(settings: Json, method: string, params: unknown): Json {
  if (method === 'workspace/configuration' && isRecord(params) && Array.isArray(params['items']))
    return params['items'].map((item: unknown) => settingOf(settings, isRecord(item) ? item['section'] : null));
  return method === 'workspace/applyEdit' ? { applied: false } : null;
}

function settingOf(settings: Json, section: unknown): Json {
  let found: unknown = settings;
  for (const name of typeof section === 'string' ? section.split('.') : [])
    found = isRecord(found) && Object.hasOwn(found, name) ? found[name] : null;
  return (found ?? null) as Json;
}

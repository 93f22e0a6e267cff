import { stat } from 'node:fs/promises';
import { extname } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { isRecord, type Json } from '../../kernel/core/json.js';
import { addAll, largestOf } from '../../kernel/core/lists.js';
import { loadOnce } from '../../kernel/core/runtime.js';
import { readBoundedText } from '../../kernel/disk/bounded-file.js';
import type { OpenCommand } from '../../kernel/tools/process/lasting-process.js';
import type { ChildCommand } from '../../kernel/tools/process/start-child.js';
import type { Sandbox } from '../../kernel/core/tool.js';
import { answerServer, connectServer, type LanguageConnection } from './language-connection.js';
import type { LanguageServer } from './language-servers.js';
import { createTimeLimit, type TimeLimit } from './time-limit.js';
import {
  countErrors,
  type ErrorCounts,
  errorsOfTypescript,
  type FoundError,
  newErrors,
  readErrors,
} from './read-errors.js';

/** A file that a call changed. Paths are absolute. */
export interface EditedFile {
  readonly path: string;
  /** Null: it is new. */
  readonly before: string | null;
  readonly after: string;
}

/** Errors that were not there before. */
export interface NewErrors {
  readonly errors: readonly FoundError[];
  /** All files were checked in time. */
  readonly isWhole: boolean;
}

export interface SessionHost {
  readonly open: OpenCommand;
  readonly command: ChildCommand & { readonly sandbox: Sandbox };
  readonly server: LanguageServer;
  /** The working directory, absolute. */
  readonly root: string;
  readonly options: Readonly<Record<string, Json>>;
  /** Its answer when it asks for its settings. */
  readonly settings: Json;
  /** Called once, when the server exited or was stopped after a failure. */
  readonly onEnd: (why: string) => void;
}

/** A file that the server has open. */
interface OpenDocument {
  readonly path: string;
  readonly uri: string;
  version: number;
  text: string;
  /** Its state on disk when its text was read. */
  readAt: string;
  /** Its text before the first change of this session, and null for a new file; missing for one that was not changed. */
  first?: string | null;
  /** The errors that were reported, or that were there before; null: they are not known yet. */
  known: ErrorCounts | null;
  /** Errors that the server sent without a request, with the version of the file. */
  sent: { readonly version: number; readonly at: number; readonly errors: readonly FoundError[] } | null;
}

const noErrors: ErrorCounts = new Map();
/** Errors that are found this long after an edit are still reported. */
const lateMs = 15_000;
/** A server that does not check one of so many edits in a row in all this time is given up. */
const maxUnanswered = 2;
/** The most files that a server has open, and that one edit checks. */
const maxDocuments = 50;
const shutdownMs = 300;
const initializeMs = 20_000;
const maxFileBytes = 1_000_000;
/** A server that pushes errors may send more of them. */
const settledMs = 150;
const pollMs = 20;

/** One running language server and the files that it has open. Checks are made one after the other. */
export class ServerSession {
  readonly #host: SessionHost;
  readonly #documents = new Map<string, OpenDocument>();
  #connection: LanguageConnection | null = null;
  readonly #ready = loadOnce(() => this.#start());
  #way: 'typescript' | 'pull' | 'push' = 'push';
  #last: Promise<unknown> = Promise.resolve();
  #current: TimeLimit | null = null;
  #unanswered = 0;

  constructor(host: SessionHost) {
    this.#host = host;
  }

  get isRunning(): boolean {
    return this.#connection !== null;
  }

  get openFiles(): number {
    return this.#documents.size;
  }

  /** Starts the server. Resolves with false where it cannot be started or does not answer. */
  start(): Promise<boolean> {
    return this.#ready.get();
  }

  /** Returns the errors that changes have caused: those of the changed file and of `others`, the files that import it, or
   * null where those could not be found in time. Takes `withinMs` at most; what is found after that goes to `onLate`, unless a later check includes it. */
  async check(
    changed: EditedFile,
    others: Promise<readonly string[] | null>,
    { withinMs, onLate }: { readonly withinMs: number; readonly onLate: (found: NewErrors) => void },
  ): Promise<NewErrors> {
    this.#current?.end();
    const limit = createTimeLimit(withinMs + lateMs);
    this.#current = limit;
    const checked = this.#last.then(() => this.#check(changed, others, limit));
    this.#last = checked.catch(() => undefined);
    const inTime = await Promise.race([checked, createTimeLimit(withinMs).over]);
    if (inTime !== null) return inTime;
    void checked.then(async (found) => {
      if (this.#current !== limit) return;
      if (found.errors.length > 0) onLate(found);
      this.#unanswered = found.isWhole ? 0 : this.#unanswered + 1;
      if (this.#unanswered < maxUnanswered || !this.isRunning) return;
      await this.stop();
      this.#host.onEnd('it does not answer in time');
    });
    return { errors: [], isWhole: false };
  }

  async stop(): Promise<void> {
    const connection = this.#connection;
    this.#connection = null;
    if (!connection) return;
    await connection.request('shutdown', null, createTimeLimit(shutdownMs).over);
    connection.notify('exit', null);
    await connection.close();
  }

  async #start(): Promise<boolean> {
    const { open, command, root, options, settings, onEnd } = this.#host;
    const connection = await connectServer(open, command, {
      onRequest: (method, params) => answerServer(settings, method, params),
      onNotification: (method, params) => {
        if (method === 'textDocument/publishDiagnostics') this.#take(params);
      },
      onEnd: (why) => {
        this.#connection = null;
        onEnd(why);
      },
    });
    if ('started' in connection) {
      onEnd(`it could not be started: ${connection.error}`);
      return false;
    }
    this.#connection = connection;
    const answer = await connection.request(
      'initialize',
      initializeParams(command.sandbox, root, options),
      createTimeLimit(initializeMs).over,
    );
    if (!isRecord(answer)) {
      if (this.#connection === connection) {
        this.#connection = null;
        await connection.close();
        onEnd('it does not answer');
      }
      return false;
    }
    this.#way = wayOf(answer['capabilities'], this.#host.server);
    connection.notify('initialized', {});
    return true;
  }

  #take(params: unknown): void {
    if (!isRecord(params) || typeof params['uri'] !== 'string') return;
    const document = this.#documents.get(pathOf(params['uri']));
    if (!document) return;
    const version = typeof params['version'] === 'number' ? params['version'] : document.version;
    document.sent = { version, at: performance.now(), errors: readErrors(document.path, params['diagnostics']) };
  }

  async #check(
    changed: EditedFile,
    importers: Promise<readonly string[] | null>,
    limit: TimeLimit,
  ): Promise<NewErrors> {
    if (!(await this.start())) return { errors: [], isWhole: false };
    await this.#refresh(changed.path);
    const document = this.#show(changed.path, changed.after);
    if (document.first === undefined) document.first = changed.before;
    // clangd checks the files that include a header again when that is saved.
    if (document.version === 1)
      this.#connection?.notify('textDocument/didSave', { textDocument: { uri: document.uri } });
    this.#connection?.notify('workspace/didChangeWatchedFiles', {
      changes: [{ uri: document.uri, type: changed.before === null ? 1 : 2 }],
    });
    const others = await importers;
    for (const path of others ?? []) await this.#open(path);
    this.#closeOldest(new Set([changed.path, ...(others ?? [])]));
    const paths = [...this.#documents.keys()];
    const found = await this.#errorsOf(paths, limit);
    await this.#learnEarlier(paths, found, limit);
    // A newer edit interrupted this check: its own check reports the errors of both edits.
    if (this.#current !== limit) return { errors: [], isWhole: false };
    const { errors, isWhole } = this.#report(paths, found);
    return { errors, isWhole: isWhole && others !== null };
  }

  /** Learns which errors of files that were never checked are older than the changes, by showing the server the files as
   * they were. */
  async #learnEarlier(
    paths: readonly string[],
    found: ReadonlyMap<string, readonly FoundError[]>,
    limit: TimeLimit,
  ): Promise<void> {
    const unknown = this.#shown(paths).filter(
      ({ path, known }) => known === null && (found.get(path) ?? []).length > 0,
    );
    for (const document of unknown) if (document.first === null) document.known = noErrors;
    const asked = unknown.filter(({ known }) => known === null);
    if (asked.length === 0) return;
    const changed = [...this.#documents.values()].filter(
      ({ first, text }) => typeof first === 'string' && first !== text,
    );
    const now = changed.map(({ path, text }) => [path, text] as const);
    for (const { path, first } of changed) this.#show(path, first ?? '');
    const earlier = await this.#errorsOf(
      asked.map(({ path }) => path),
      limit,
    );
    for (const [path, text] of now) this.#show(path, text);
    for (const document of asked) {
      const errors = earlier.get(document.path);
      if (errors) document.known = countErrors(errors);
    }
  }

  /** Returns the errors that are new, and remembers them. A file whose earlier errors are not known waits for a later
   * check. */
  #report(paths: readonly string[], found: ReadonlyMap<string, readonly FoundError[]>): NewErrors {
    const documents = this.#shown(paths);
    const fresh = documents.flatMap((document) => {
      const errors = found.get(document.path);
      if (!errors || (document.known === null && errors.length > 0)) return [];
      const added = newErrors(errors, document.known ?? noErrors);
      document.known = countErrors(errors);
      return added;
    });
    return { errors: fresh, isWhole: documents.every(({ path, known }) => known !== null && found.has(path)) };
  }

  #shown(paths: readonly string[]): readonly OpenDocument[] {
    return paths.flatMap((path) => this.#documents.get(path) ?? []);
  }

  /** Shows the server the text of a file. */
  #show(path: string, text: string): OpenDocument {
    const known = this.#documents.get(path);
    if (known) {
      if (known.text === text) return known;
      known.text = text;
      known.version++;
      known.sent = null;
      this.#connection?.notify('textDocument/didChange', {
        textDocument: { uri: known.uri, version: known.version },
        contentChanges: [{ text }],
        // Else clangd says nothing about a text that it has checked before.
        wantDiagnostics: true,
      });
      this.#connection?.notify('textDocument/didSave', { textDocument: { uri: known.uri } });
      return known;
    }
    const uri = pathToFileURL(path).href;
    const document: OpenDocument = { path, uri, version: 1, text, readAt: '', known: null, sent: null };
    this.#documents.set(path, document);
    const languageId = this.#host.server.languages[extname(path).toLowerCase()] ?? '';
    this.#connection?.notify('textDocument/didOpen', { textDocument: { uri, languageId, version: 1, text } });
    return document;
  }

  /** Shows the server a file as it is on disk. */
  async #open(path: string): Promise<void> {
    const state = await stat(path).catch(() => null);
    if (state === null || !state.isFile() || state.size > maxFileBytes) return;
    const readAt = `${state.mtimeMs} ${state.size}`;
    if (this.#documents.get(path)?.readAt === readAt) return;
    const text = readBoundedText(path, { maxBytes: maxFileBytes, longer: 'refuse', links: 'follow' });
    if (text !== null) this.#show(path, text).readAt = readAt;
  }

  /** Shows the server open files that something else has changed, and closes those that are gone. */
  async #refresh(changedPath: string): Promise<void> {
    for (const { path, uri } of [...this.#documents.values()]) {
      if (path === changedPath) continue;
      if ((await stat(path).catch(() => null)) !== null) {
        await this.#open(path);
        continue;
      }
      this.#close({ path, uri });
    }
  }

  /** Closes the files that have been open the longest, so that a long session does not keep all that it has edited. */
  #closeOldest(kept: ReadonlySet<string>): void {
    const others = [...this.#documents.values()].filter(({ path }) => !kept.has(path));
    for (const document of others.slice(0, Math.max(0, this.#documents.size - maxDocuments))) this.#close(document);
  }

  #close({ path, uri }: Pick<OpenDocument, 'path' | 'uri'>): void {
    this.#documents.delete(path);
    this.#connection?.notify('textDocument/didClose', { textDocument: { uri } });
  }

  /** Returns the errors of files as they are shown to the server now; those that it does not report in time are missing. */
  async #errorsOf(paths: readonly string[], limit: TimeLimit): Promise<ReadonlyMap<string, readonly FoundError[]>> {
    const found = new Map<string, readonly FoundError[]>();
    const ask = async (document: OpenDocument): Promise<void> => {
      const errors = await this.#ask(document, limit);
      if (errors && !limit.isOver) found.set(document.path, errors);
    };
    await Promise.all(this.#shown(paths).map(ask));
    return found;
  }

  async #ask(document: OpenDocument, limit: TimeLimit): Promise<readonly FoundError[] | null> {
    switch (this.#way) {
      case 'typescript':
        return await this.#askTypescript(document, limit);
      case 'pull':
        return await this.#pull(document, limit);
      case 'push':
        return await this.#awaitSent(document, limit);
      default:
        return this.#way satisfies never;
    }
  }

  /** TypeScript's server returns the errors of a file as it is now, where the protocol has only what comes later. */
  async #askTypescript({ path, uri }: OpenDocument, limit: TimeLimit): Promise<readonly FoundError[] | null> {
    const found: FoundError[] = [];
    for (const command of ['syntacticDiagnosticsSync', 'semanticDiagnosticsSync']) {
      const params = { command: typescriptCommand, arguments: [command, { file: uri }] };
      const answer = await this.#request('workspace/executeCommand', params, limit);
      const errors = errorsOfTypescript(path, answer);
      if (errors === null) return null;
      addAll(found, errors);
    }
    return found;
  }

  async #pull({ path, uri }: OpenDocument, limit: TimeLimit): Promise<readonly FoundError[] | null> {
    while (!limit.isOver && this.isRunning) {
      const answer = await this.#request('textDocument/diagnostic', { textDocument: { uri } }, limit);
      if (isRecord(answer) && answer['kind'] === 'full') return readErrors(path, answer['items']);
      // It is still reading the project, or has been asked something newer.
      await pause(pollMs);
    }
    return null;
  }

  /** Waits until the server has sent errors for all files that were shown since, and sends no more. */
  async #awaitSent({ path }: OpenDocument, limit: TimeLimit): Promise<readonly FoundError[] | null> {
    while (!limit.isOver && this.isRunning) {
      const all = [...this.#documents.values()].map(({ sent, version }) =>
        sent && sent.version >= version ? sent.at : null,
      );
      const last = all.every((at) => at !== null) ? largestOf(all, 0) : Number.POSITIVE_INFINITY;
      if (performance.now() - last >= settledMs) return this.#documents.get(path)?.sent?.errors ?? null;
      await pause(pollMs);
    }
    return null;
  }

  async #request(method: string, params: unknown, limit: TimeLimit): Promise<unknown> {
    return (await this.#connection?.request(method, params, limit.over)) ?? null;
  }
}

const typescriptCommand = 'typescript.tsserverRequest';

function wayOf(capabilities: unknown, { ask }: LanguageServer): 'typescript' | 'pull' | 'push' {
  if (!isRecord(capabilities)) return 'push';
  const { executeCommandProvider: provider, diagnosticProvider } = capabilities;
  const commands = isRecord(provider) ? provider['commands'] : [];
  if (ask === 'typescript' && Array.isArray(commands) && commands.includes(typescriptCommand)) return 'typescript';
  return ask === 'pull' || isRecord(diagnosticProvider) ? 'pull' : 'push';
}

function initializeParams(sandbox: Sandbox, root: string, options: Readonly<Record<string, Json>>): unknown {
  const uri = pathToFileURL(root).href;
  return {
    // A sandbox has process numbers of its own.
    processId: sandbox === 'off' ? process.pid : null,
    rootUri: uri,
    workspaceFolders: [{ uri, name: 'project' }],
    capabilities: {
      textDocument: {
        synchronization: { didSave: true },
        publishDiagnostics: { versionSupport: true },
        diagnostic: { dynamicRegistration: false, relatedDocumentSupport: false },
      },
      workspace: { configuration: true, workspaceFolders: true },
    },
    initializationOptions: options,
  };
}

function pathOf(uri: string): string {
  try {
    return fileURLToPath(uri);
  } catch {
    return '';
  }
}

async function pause(milliseconds: number): Promise<void> {
  await new Promise((resolve) => {
    setTimeout(resolve, milliseconds).unref();
  });
}

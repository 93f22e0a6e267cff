import { existsSync, readdirSync } from 'node:fs';
import { basename, dirname, extname, join, relative, resolve } from 'node:path';
import type { FileChange, Registry, Sandbox, ToolContext } from '../../kernel/core/tool.js';
import { isError } from '../../kernel/core/envelope.js';
import type { Json } from '../../kernel/core/json.js';
import type { OpenCommand } from '../../kernel/tools/process/lasting-process.js';
import {
  type LanguageServer,
  languageServers,
  packagesOf,
  pathServer,
  projectServer,
  pythonPackages,
  serverFor,
  typescriptBeside,
} from './language-servers.js';
import type { ServerState } from './diagnostics-parts.js';
import type { FoundError } from './read-errors.js';
import type { EditedFile, NewErrors, ServerSession } from './server-session.js';

/** The run whose edits are checked. */
export interface EditCheckHost {
  readonly open: OpenCommand;
  /** The working directory, absolute. */
  readonly root: string;
  /** The topmost folder of the project, absolute. */
  readonly projectRoot: string;
  readonly env: Readonly<Record<string, string>>;
  readonly registry: Registry;
  /** Returns the user's answer about the files of the project that need trust. */
  readonly trust: () => Promise<ProjectTrust>;
  /** Milliseconds that an edit waits at most. */
  readonly waitMs: number;
  /** Takes a note for the model of a session: what was found after the result of its edit. */
  readonly onLate: (session: string, note: string) => void;
}

export type ProjectTrust = 'trusted' | 'not trusted' | 'nothing to trust';

/** The errors that an edit has caused. */
export interface EditFinding {
  /** Fields for the result of the edit. */
  readonly facts: Readonly<Record<string, Json>>;
  readonly summary: string;
}

interface Running {
  readonly server: LanguageServer;
  /** Its program, absolute. */
  readonly file: string;
  readonly session: ServerSession;
  /** Checks in a row that were not done in time. */
  late: number;
}

const maxLines = 20;
const maxImporters = 20;
const maxStarts = 3;
/** The number of late checks after which edits stop waiting for a server, until one check is in time. */
const maxLate = 3;
const hurriedMs = 50;
/** The longest search for files that import an edited one. It continues behind the result of the edit, as the check does. */
const searchMs = 10_000;
const maxBytes = 1_000_000;

const loadSession = () => import('./server-session.js');

/** Checks the files that edits change by the language servers of this machine. A server runs from the first edit of one
 * of its files until `close`. */
export class EditChecks {
  readonly #host: EditCheckHost;
  readonly #running = new Map<string, Running>();
  readonly #starts = new Map<string, number>();
  /** The reasons why servers do not run, by their names. */
  readonly #problems = new Map<string, string>();
  #isClosed = false;

  constructor(host: EditCheckHost) {
    this.#host = host;
  }

  /** Returns the errors that the changes of one call have caused; null where no server knows such files, and where there
   * are none. Never rejects, and takes `waitMs` at most. */
  async after(changes: readonly FileChange[], ctx: ToolContext): Promise<EditFinding | null> {
    const deadline = performance.now() + this.#host.waitMs;
    const [change] = changes;
    const server = change ? serverFor(change.path) : null;
    if (!change?.after || !server || !this.#mayCheck(change)) return null;
    const changed = {
      path: change.path,
      before: change.before === null ? null : decodeText(change.before),
      after: decodeText(change.after),
    };
    try {
      const running = await this.#serverFor(server, ctx.sandbox === 'off' ? 'off' : 'read-only');
      if (running === null) return null;
      const found = await this.#check(running, changed, { deadline, ctx });
      return found !== null && running.session.isRunning ? this.#finding(found, server) : null;
    } catch {
      return null; // an edit never fails because of its check
    }
  }

  async #check(
    running: Running,
    changed: EditedFile,
    { deadline, ctx }: { readonly deadline: number; readonly ctx: ToolContext },
  ): Promise<NewErrors | null> {
    const { session, server } = running;
    const importers = this.#importersOf(server, changed.path, ctx).catch(() => null);
    const withinMs = running.late >= maxLate ? hurriedMs : deadline - performance.now();
    const onLate = (late: NewErrors): void => {
      this.#host.onLate(ctx.session.id, this.#lateNote(late, server, changed.path));
    };
    const found = await untilAborted(session.check(changed, importers, { withinMs, onLate }), ctx.signal);
    if (found !== null) running.late = found.isWhole ? 0 : running.late + 1;
    return found;
  }

  #mayCheck({ path, before, after }: FileChange): boolean {
    const bytes = Math.max(before?.length ?? 0, after?.length ?? 0);
    return !this.#isClosed && bytes <= maxBytes && path.startsWith(`${this.#host.root}/`);
  }

  states(): readonly ServerState[] {
    return languageServers.map((server) => {
      const running = this.#running.get(server.name);
      const file = running?.file ?? this.#fileOf(server);
      const facts = { name: server.name, ends: Object.keys(server.languages), install: server.install, file };
      const problem = this.#problems.get(server.name);
      if (running?.session.isRunning) return { ...facts, state: 'running', openFiles: running.session.openFiles };
      if (problem !== undefined) return { ...facts, state: 'stopped', problem };
      return { ...facts, state: file === null ? 'missing' : 'waiting' };
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#running.values()].map(async ({ session }) => await session.stop()));
    this.#running.clear();
  }

  async #serverFor(server: LanguageServer, sandbox: Sandbox): Promise<Running | null> {
    const known = this.#running.get(server.name);
    if (known) return known;
    const starts = this.#starts.get(server.name) ?? 0;
    if (starts >= maxStarts) return null;
    const found = await this.#find(server, sandbox);
    if (found === null || this.#isClosed) return null;
    const made = await this.#open(server, { ...found, sandbox });
    const other = this.#running.get(server.name);
    if (other) return other;
    this.#problems.delete(server.name);
    this.#starts.set(server.name, starts + 1);
    this.#running.set(server.name, made);
    void made.session.start();
    return made;
  }

  /** Returns the program to start, and whether the user trusts the project; null where there is none, or it may not
   * run. */
  async #find(server: LanguageServer, sandbox: Sandbox): Promise<FoundProgram | null> {
    const { root, projectRoot } = this.#host;
    const file = this.#fileOf(server);
    if (file === null) return null;
    const answer = await this.#host.trust();
    const trust = answer !== 'trusted' && file.startsWith(`${projectRoot}/`) ? 'not trusted' : answer;
    const problem = problemOf(server, { root, sandbox, trust, file });
    if (problem === null) return { file, isTrusted: trust === 'trusted' };
    this.#problems.set(server.name, problem);
    return null;
  }

  #fileOf(server: LanguageServer): string | null {
    const { root, projectRoot, env } = this.#host;
    return projectServer(server, [root, projectRoot]) ?? pathServer(server, env['PATH'] ?? '', projectRoot);
  }

  async #open(
    server: LanguageServer,
    { file, isTrusted, sandbox }: FoundProgram & { readonly sandbox: Sandbox },
  ): Promise<Running> {
    const { open, root, env } = this.#host;
    const { ServerSession: Session } = await loadSession();
    const beside = server.typescript === true && !isTrusted ? typescriptBeside(file) : null;
    const session = new Session({
      open,
      command: { file, args: server.args, cwd: root, env: { ...env, ...server.env }, sandbox, shows: packagesOf(file) },
      server,
      root,
      options: { ...server.options, ...(beside === null ? {} : { tsserver: { path: beside } }) },
      settings: server.python === true ? { python: { analysis: { extraPaths: [...pythonPackages(root)] } } } : {},
      onEnd: (why) => {
        if (this.#running.get(server.name)?.session !== session) return;
        this.#running.delete(server.name);
        this.#problems.set(server.name, why);
      },
    });
    return { server, file, session, late: 0 };
  }

  /** Returns the files that may see a file: those that import it, by the name in their import lines, and where the
   * language has no such lines between files of one folder, those. Null where they were not found in time. */
  async #importersOf(server: LanguageServer, path: string, ctx: ToolContext): Promise<readonly string[] | null> {
    const { siblings, imports, languages } = server;
    const ends = Object.keys(languages);
    const near = siblings === true ? readdirSync(dirname(path)).map((name) => join(dirname(path), name)) : [];
    const far = imports === undefined ? [] : await this.#search(importPattern(imports, path), ends, ctx);
    if (far === null) return null;
    const others = new Set([...near, ...far].filter((one) => one !== path && ends.includes(extname(one))));
    return [...others].slice(0, maxImporters);
  }

  async #search(pattern: string, ends: readonly string[], ctx: ToolContext): Promise<readonly string[] | null> {
    const grep = this.#host.registry.get('grep');
    if (!grep) return [];
    const glob = `*.{${ends.map((end) => end.slice(1)).join(',')}}`;
    const signal = AbortSignal.any([ctx.signal, AbortSignal.timeout(searchMs)]);
    const outcome = await grep.run({ pattern, glob }, { ...ctx, signal, progress: () => undefined });
    if (isError(outcome.envelope)) return null;
    const paths = outcome.envelope.output.split('\n').flatMap((line) => /^(.+?):\d+:/.exec(line)?.[1] ?? []);
    return [...new Set(paths)].map((one) => resolve(ctx.cwd, one));
  }

  #finding({ errors, isWhole }: NewErrors, { name }: LanguageServer): EditFinding | null {
    if (errors.length === 0 && isWhole) return null;
    const late = `${name} has not checked everything yet; you get a note if it finds errors`;
    return {
      facts: {
        ...(errors.length === 0 ? {} : { diagnostics: [...this.#lines(errors)] }),
        ...(isWhole ? {} : { diagnostics_note: late }),
      },
      summary: errors.length === 0 ? '' : countOf(errors),
    };
  }

  #lateNote({ errors }: NewErrors, { name }: LanguageServer, path: string): string {
    const about = relative(this.#host.root, path);
    return `[Note: ${name} found ${countOf(errors)} after the edit of ${about}:\n${this.#lines(errors).join('\n')}]`;
  }

  /** Returns an error a line, at most `maxLines`. */
  #lines(errors: readonly FoundError[]): readonly string[] {
    const lines = errors
      .slice(0, maxLines)
      .map(
        ({ path, line, column, code, message }) =>
          `${relative(this.#host.root, path)}:${line}:${column} ${code === '' ? 'error' : `error ${code}`}: ${message}`,
      );
    if (lines.length === errors.length) return lines;
    const shown = lines.slice(0, maxLines - 1);
    return [...shown, `and ${errors.length - shown.length} more errors`];
  }
}

interface FoundProgram {
  /** Absolute. */
  readonly file: string;
  readonly isTrusted: boolean;
}

/** Returns why a server may not run; null where it may. */
function problemOf(
  { needsHome, typescript, programFiles, install }: LanguageServer,
  {
    root,
    sandbox,
    trust,
    file,
  }: { readonly root: string; readonly sandbox: Sandbox; readonly trust: ProjectTrust; readonly file: string },
): string | null {
  if (sandbox !== 'off' && needsHome === true) return 'it needs files of your home folder, which the sandbox hides';
  if (trust === 'trusted') return null;
  if (trust === 'not trusted') return 'you have not trusted this project (agent config trust)';
  const named = programFiles?.find((name) => existsSync(join(root, name)));
  if (named !== undefined) return `it would run programs that ${named} names, and nothing asks you to trust that file`;
  return typescript === true && typescriptBeside(file) === null
    ? `there is no TypeScript beside it, and nothing asks you to trust that of the project (${install})`
    : null;
}

/** Returns the expression for lines that import a file. `index.ts` and `__init__.py` have the name of their folder. */
function importPattern(imports: string, path: string): string {
  const folder = basename(dirname(path));
  const own = basename(path, extname(path));
  const name = own === 'index' || own === '__init__' ? folder : own;
  const escaped = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
  return imports.replace('{name}', () => escaped(name)).replace('{folder}', () => escaped(folder));
}

function countOf({ length }: readonly FoundError[]): string {
  return `${length} new ${length === 1 ? 'error' : 'errors'}`;
}

function decodeText(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('utf8');
}

/** Resolves with null as soon as the call is cancelled. */
async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | null> {
  if (signal.aborted) return null;
  let stop = (): void => undefined;
  const aborted = new Promise<null>((resolve) => {
    stop = () => {
      resolve(null);
    };
    signal.addEventListener('abort', stop, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

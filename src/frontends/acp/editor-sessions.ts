import { randomUUID } from 'node:crypto';
import { isAbsolute } from 'node:path';
import {
  type AgentContext,
  type ContentBlock,
  type McpServer,
  type PromptResponse,
  RequestError,
} from '@agentclientprotocol/sdk';
import { createAgentSession, openRun } from '../../app/create-session.js';
import { SessionInUse } from '../../app/find-session.js';
import { readSettings } from '../../app/settings.js';
import { CliError, exit } from '../../kernel/console/command.js';
import type { RootOptions } from '../../kernel/console/options.js';
import type { SessionChoice } from '../../kernel/console/run-settings.js';
import type { EditorConnection, EditorSession, Place } from './editor-session.js';
import { JoinedSession } from './joined-session.js';
import { OwnSession } from './own-session.js';

/** Makes an error of the protocol of one that the user can act on. */
export async function refusing<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    const message = `${error.message}. ${error.hint}`.trim();
    throw error.exitCode === exit.failed
      ? RequestError.internalError({ message }, message)
      : RequestError.invalidParams({ message }, message);
  }
}

/** A session, and where the editor has opened it. */
interface Opened {
  readonly session: EditorSession;
  readonly place: Place;
}

const newSession: SessionChoice = { continueNewest: false, resume: null, fork: false };

/** The sessions that an editor has open. */
export class EditorSessions {
  showsForms = false;
  readonly #options: RootOptions;
  readonly #open = new Map<string, Opened>();
  /** The sessions that are being opened. */
  readonly #opening = new Map<string, Promise<EditorSession>>();

  /** The number of cancels of each session. */
  readonly #cancels = new Map<string, number>();

  constructor(options: RootOptions) {
    this.#options = options;
  }

  async create(client: AgentContext, place: Place): Promise<EditorSession> {
    const session = await refusing(() => this.#openOwn(this.#editor(client), place, newSession));
    this.#open.set(session.id, { session, place });
    return session;
  }

  /** Opens a session that is stored: here, or as a client of the process that runs it. */
  async open(client: AgentContext, place: Place, id: string): Promise<EditorSession> {
    const { session } = this.#open.get(id) ?? {};
    if (session && !session.isOver()) return session;
    return await this.#once(id, () => this.#openStored(this.#editor(client), place, id, session ?? null));
  }

  find(id: string): EditorSession {
    return this.#opened(id).session;
  }

  /** Runs a prompt in the process that runs the session. If there is none any more, this one continues the session. */
  async prompt(client: AgentContext, id: string, blocks: readonly ContentBlock[]): Promise<PromptResponse> {
    const prompt = { ref: randomUUID(), blocks };
    const cancels = this.#cancels.get(id) ?? 0;
    for (;;) {
      const { session, place } = this.#opened(id);
      const current = session.isOver() ? await this.#again(client, place, session) : session;
      if ((this.#cancels.get(id) ?? 0) !== cancels) return { stopReason: 'cancelled' };
      const response = await current.prompt(prompt);
      if (response !== 'over') return response;
    }
  }

  cancel(id: string): void {
    this.#cancels.set(id, (this.#cancels.get(id) ?? 0) + 1);
    this.#open.get(id)?.session.cancel();
  }

  async close(id: string): Promise<void> {
    await this.#open.get(id)?.session.close();
    this.#open.delete(id);
  }

  async closeAll(): Promise<void> {
    await Promise.all([...this.#open.values()].map(({ session }) => session.close()));
  }

  #editor(client: AgentContext): EditorConnection {
    return { client, showsForms: this.showsForms };
  }

  #opened(id: string): Opened {
    const opened = this.#open.get(id);
    if (!opened) throw RequestError.sessionNotFound(id);
    return opened;
  }

  async #again(client: AgentContext, place: Place, before: EditorSession): Promise<EditorSession> {
    return await this.#once(before.id, () => this.#openStored(this.#editor(client), place, before.id, before));
  }

  async #once(id: string, open: () => Promise<EditorSession>): Promise<EditorSession> {
    const opening = this.#opening.get(id) ?? refusing(open);
    this.#opening.set(id, opening);
    try {
      return await opening;
    } finally {
      if (this.#opening.get(id) === opening) this.#opening.delete(id);
    }
  }

  /** `before`: the session as the editor has it, whose process is gone. */
  async #openStored(
    editor: EditorConnection,
    place: Place,
    id: string,
    before: EditorSession | null,
  ): Promise<EditorSession> {
    const session = await this.#openHere(editor, place, id, before).catch(async (error: unknown) => {
      if (!(error instanceof SessionInUse)) throw error;
      const joined = await this.#join(editor, place, error.sessionId, before);
      if (joined === null) throw error;
      return joined;
    });
    this.#open.set(id, { session, place });
    return session;
  }

  async #openHere(
    editor: EditorConnection,
    place: Place,
    id: string,
    before: EditorSession | null,
  ): Promise<EditorSession> {
    const shown = before instanceof JoinedSession ? before.sent() : new Set<string>();
    const session = await this.#openOwn(editor, place, { ...newSession, resume: id }, shown);
    if (before === null) return session;
    session.catchUp(before.lastSeq());
    session.begin();
    await before.close();
    return session;
  }

  async #join(
    editor: EditorConnection,
    place: Place,
    id: string,
    before: EditorSession | null,
  ): Promise<JoinedSession | null> {
    if (before instanceof JoinedSession) return (await before.isRunning()) ? before : null;
    const settings = await readSettings({ ...this.#options, cwd: place.cwd });
    const joined = await JoinedSession.open(editor, settings, id, place);
    if (before === null || joined === null) return joined;
    joined.begin();
    return joined;
  }

  async #openOwn(
    editor: EditorConnection,
    { cwd, mcpServers = [] }: Place,
    choice: SessionChoice,
    shown?: ReadonlySet<string>,
  ): Promise<OwnSession> {
    if (!isAbsolute(cwd)) throw RequestError.invalidParams({ cwd }, `cwd is not an absolute path: ${cwd}`);
    const given = { ...this.#options, cwd };
    const settings = await readSettings(given);
    const givenServers = serverEntries(mcpServers);
    const withServers = mcpServers.length === 0 ? settings : { ...settings, givenServers };
    const run = await openRun(withServers, given, { canAsk: true });
    try {
      return new OwnSession(editor, run, await createAgentSession(run, choice, true), shown);
    } catch (error) {
      await run.close();
      throw error;
    }
  }
}

const maxNameChars = 24;

/** Servers as `mcp.json` has them. Editors name theirs as they like: of names that become the same one here, the later
 * ones end in a number. */
function serverEntries(servers: readonly McpServer[]): Readonly<Record<string, Readonly<Record<string, unknown>>>> {
  const entries = new Map<string, Readonly<Record<string, unknown>>>();
  for (const server of servers) {
    const plain = server.name.replaceAll(/[^A-Za-z0-9-]+/g, '_').slice(0, maxNameChars) || '_';
    let name = plain;
    for (let number = 2; entries.has(name); number++) {
      const end = `-${number}`;
      name = `${plain.slice(0, maxNameChars - end.length)}${end}`;
    }
    entries.set(name, serverEntry(server));
  }
  return Object.fromEntries(entries);
}

function serverEntry(server: McpServer): Readonly<Record<string, unknown>> {
  const pairs = (list: readonly { readonly name: string; readonly value: string }[]): Record<string, string> =>
    Object.fromEntries(list.map((each) => [each.name, each.value]));
  if ('command' in server) return { command: server.command, args: server.args, env: pairs(server.env) };
  return { type: server.type, url: server.url, headers: pairs(server.headers) };
}

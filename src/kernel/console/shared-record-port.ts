import type { Event } from '../core/event.js';
import type { SearchFilters } from '../core/files/search-filters.js';
import type { SearchHit, SessionRow, SqlAnswer, Store } from '../core/store.js';
import type { Tables } from '../store/tables.js';
import { CliError, type CommandLine, exit } from './command.js';
import { pointInTime } from './line-output.js';
import { PartKey, type Parts } from './parts.js';
import type { Settings } from './run-settings.js';

/** The options of commands that read the record of a team. */
export interface TeamOptions {
  readonly team?: boolean;
  readonly person?: string;
  readonly since?: string;
  readonly here?: boolean;
  readonly limit?: string;
  readonly json?: boolean;
}

/** The part of the record that is asked for. */
export interface TeamScope {
  /** The role that made the sessions. */
  readonly owner?: string;
  readonly cwd?: string;
  /** Unix ms. */
  readonly since?: number;
}

/** Returns what `--person`, `--since` and `--here` leave of the record. Throws a `CliError` for a time that is none. */
export function scopeOf({ person, since, here }: TeamOptions, { cwd }: Pick<Settings, 'cwd'>): TeamScope {
  return {
    ...(person === undefined ? {} : { owner: person }),
    ...(here ? { cwd } : {}),
    ...(since === undefined ? {} : { since: pointInTime(since, '--since', Date.now()) }),
  };
}

/** A session on the server of a team. */
export interface SharedSession {
  readonly row: SessionRow;
  readonly log: Pick<Store, 'load' | 'tail'>;
  /** Rings where something new is written; where the server cannot notify, it is asked every `everyMs` ms. */
  readonly bell: {
    readonly everyMs: number;
    readonly listen: (ring: () => void) => Promise<(() => Promise<void>) | null>;
  };
}

type Server = Pick<Settings, 'config' | 'env' | 'home'>;

/** The record that a team shares on a server. Each method may reject with a StoreError whose `message` and `hint` are
 * for the user. The first three are commands: they print and return an exit code. */
export interface SharedRecord {
  listSessions(
    line: CommandLine,
    options: TeamOptions & { readonly all?: boolean; readonly page?: string },
  ): Promise<number>;
  audit(
    line: CommandLine,
    options: TeamOptions & {
      readonly session?: string;
      readonly tool?: string;
      readonly status?: string;
      readonly errors?: boolean;
      readonly csv?: boolean;
    },
  ): Promise<number>;
  statistics(line: CommandLine, options: TeamOptions & { readonly by?: string }): Promise<number>;
  /** The newest events that hold all words. `onUnreadable` gets the number of events whose stored JSON is broken. */
  search(
    server: Server,
    query: {
      readonly words: string;
      readonly filters: SearchFilters;
      readonly scope: TeamScope;
      readonly limit: number;
    },
    onUnreadable: (count: number) => void,
  ): Promise<readonly SearchHit[]>;
  /** Answers one reading question in SQL. */
  ask(server: Server, question: string): Promise<SqlAnswer>;
  load(server: Server, sessionId: string): Promise<readonly Event[]>;
  remove(server: Server, sessionId: string): Promise<void>;
  /** `name`: an id or its start. Null: there is none. */
  find(server: Server, name: string): Promise<SharedSession | null>;
  /** Returns the session on the server if another person or another machine wrote to it last. `tables`: those of this
   * machine. */
  writtenElsewhere(server: Server, tables: Tables, sessionId: string): Promise<SharedSession | null>;
}

export const sharedRecord = new PartKey<() => Promise<SharedRecord>>('shared record');

/** Loads the record of a team. Throws a `CliError` (2) where no feature has one. */
export async function openSharedRecord(provided: Parts): Promise<SharedRecord> {
  const load = provided.find(sharedRecord);
  if (load) return await load();
  throw new CliError(exit.usage, 'this program was built without team stores', 'Remove --team and --person.');
}

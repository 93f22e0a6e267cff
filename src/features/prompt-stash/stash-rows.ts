import type { Connection } from '../../kernel/store/connection.js';
import { stashTables } from '../../kernel/store/migrations.js';
import type { TablePlace } from '../../kernel/store/tables.js';
import type { StashedPrompt } from '../../kernel/console/prompt-stash-port.js';

/** The stashed prompts of all projects. */
export interface StashRows {
  /** Returns the id of the new row, and how many prompts the project has with it. Throws if the stack is full. */
  push(project: string, text: string): Promise<{ readonly id: number; readonly count: number }>;
  /** Returns the prompts of a project, the newest first. */
  list(project: string): Promise<readonly StashedPrompt[]>;
  remove(id: number): Promise<boolean>;
  count(project: string): Promise<number>;
}

/** The most prompts of one project. None is dropped silently: a further one is refused. */
const maxPrompts = 500;

/** Opens the stashed prompts of a place. Only a local database keeps them; elsewhere they end with the process. */
export function stashAt(place: TablePlace): StashRows {
  return place.kind === 'sqlite' ? createStashRows(place) : createMemoryStash(place.now);
}

interface StashRow {
  readonly id: number;
  readonly text: string;
  readonly created_at: number;
}

interface StashAccess {
  readonly read: <T>(work: (connection: Connection) => T) => Promise<T>;
  readonly write: <T>(work: (connection: Connection) => T) => Promise<T>;
  /** Unix ms. */
  readonly now: () => number;
}

function createStashRows({ read, write, now }: StashAccess): StashRows {
  return {
    push: (project, text) =>
      write(({ db, sql }) =>
        db
          .transaction(() => {
            db.exec(stashTables);
            const before = countRows(sql, project);
            if (before >= maxPrompts) throw new Error(fullStack);
            const { lastInsertRowid } = sql(
              'INSERT INTO stashed_prompts (directory_id, text, created_at) VALUES (?, ?, ?)',
            ).run(project, text, now());
            return { id: Number(lastInsertRowid), count: before + 1 };
          })
          .immediate(),
      ),
    list: (project) =>
      read((connection) =>
        hasStash(connection)
          ? connection
              .sql<StashRow>('SELECT id, text, created_at FROM stashed_prompts WHERE directory_id = ? ORDER BY id DESC')
              .all(project)
              .map(({ id, text, created_at: at }) => ({ id, text, savedAt: new Date(at) }))
          : [],
      ),
    remove: (id) =>
      write(
        (connection) =>
          hasStash(connection) && connection.sql('DELETE FROM stashed_prompts WHERE id = ?').run(id).changes > 0,
      ),
    count: (project) => read((connection) => (hasStash(connection) ? countRows(connection.sql, project) : 0)),
  };
}

const fullStack = `${maxPrompts} prompts are stashed in this project already; take some back first`;

function hasStash({ sql }: Connection): boolean {
  return sql("SELECT 1 FROM sqlite_schema WHERE name = 'stashed_prompts'").get() !== undefined;
}

function countRows(sql: Connection['sql'], project: string): number {
  const row = sql<{ readonly count: number }>(
    'SELECT count(*) AS count FROM stashed_prompts WHERE directory_id = ?',
  ).get(project);
  return row?.count ?? 0;
}

/** Stashed prompts that end with the process. */
function createMemoryStash(now: () => number): StashRows {
  const prompts = new Map<number, StashedPrompt & { readonly project: string }>();
  let last = 0;
  const list = (project: string): readonly StashedPrompt[] =>
    [...prompts.values()].filter((prompt) => prompt.project === project).toReversed();
  return {
    push: async (project, text) => {
      if (list(project).length >= maxPrompts) throw new Error(fullStack);
      last += 1;
      prompts.set(last, { id: last, text, savedAt: new Date(now()), project });
      return { id: last, count: list(project).length };
    },
    list: async (project) => list(project),
    remove: async (id) => prompts.delete(id),
    count: async (project) => list(project).length,
  };
}

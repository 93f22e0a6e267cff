import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import Database from 'better-sqlite3';
import { onTestFinished } from 'vitest';
import type { Event } from '../../../src/kernel/core/event.js';
import { isRecord } from '../../../src/kernel/core/json.js';
import { project } from '../../../src/kernel/core/projection.js';
import type { FoundConversation, HistoryReader } from '../../../src/features/history-import/neutral-turns.js';
import { toEvents } from '../../../src/features/history-import/to-events.js';

const recordings = fileURLToPath(new URL('../../../fixtures/histories/', import.meta.url));

/** Puts a recording into a home folder; `change` may give a file another text. */
export function bringHome(folder: string, home: string, change?: (text: string, path: string) => string): void {
  cpSync(join(recordings, folder), home, {
    recursive: true,
    filter: (from, to) => {
      const isFile = /\.(?:jsonl?|sql|md)$/.test(from);
      if (change && isFile) writeFileSync(to, change(readFileSync(from, 'utf8'), from));
      return !(change && isFile);
    },
  });
  const statements = join(home, '.local/share/opencode/opencode.db.sql');
  if (!existsSync(statements)) return;
  makeDatabase(statements.slice(0, -'.sql'.length), readFileSync(statements, 'utf8'));
  rmSync(statements);
}

export function makeDatabase(file: string, statements: string): void {
  const db = new Database(file);
  db.exec(statements);
  db.close();
}

/** A home with files: objects are lines of JSON, texts stand as they are. */
export function homeWith(files: Readonly<Record<string, string | readonly (object | string)[]>>): string {
  const home = mkdtempSync(join(tmpdir(), 'agent-histories-'));
  onTestFinished(() => {
    rmSync(home, { recursive: true, force: true });
  });
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(home, path)), { recursive: true });
    const lines = typeof content === 'string' ? [content] : content;
    const text = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n');
    writeFileSync(join(home, path), text);
  }
  return home;
}

export interface Conversation {
  readonly found: FoundConversation;
  readonly events: readonly Event[];
}

/** Reads all conversations below a home. */
export function readAll(
  reader: HistoryReader,
  home: string,
  env: Readonly<Record<string, string>> = {},
): readonly Conversation[] {
  const place = { home, env, cwd: join(home, 'shop') };
  return [...reader.sources(place)].flatMap((source) => {
    const found = reader.head(source, place);
    if (found === null) return [];
    const opening = [{ kind: 'system', content: 'ours', data: null }] as const;
    const facts = { tool: 'x', title: reader.title, found, sha256: '', opening, maxOutputBytes: 20_000 };
    return [{ found, events: [...toEvents(reader.turns(found), facts)] }];
  });
}

/** What a model is told: what the person said as a text, an answer as a list with its calls. */
export function told({ events }: Conversation): readonly unknown[] {
  return project(events)
    .messages.map((message) =>
      message.role === 'user'
        ? message.content
        : [message.text, ...message.calls.map(({ name, result }) => `${name}: ${result.output}`)],
    )
    .slice(0, -1);
}

export function dropped({ events }: Conversation): unknown {
  const data = events.find(({ kind }) => kind === 'import')?.data;
  return isRecord(data) ? data['dropped'] : null;
}

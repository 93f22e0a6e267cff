import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Blame } from '../../../src/features/provenance/blame-file.js';
import { lineJson } from '../../../src/features/provenance/blame-formats.js';
import { ChangeLog } from '../../../src/features/provenance/change-log.js';
import { chooseReverts } from '../../../src/features/undo/choose-reverts.js';
import { act } from '../../../src/features/undo/revert-plan.js';
import type { Event } from '../../../src/kernel/core/event.js';
import { isRecord } from '../../../src/kernel/core/json.js';
import { changedFileTables } from '../../../src/features/provenance/changed-file-rows.js';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { type RiggedSession, undoRig, type UndoRig } from '../undo/undo-rig.js';

/** `BLAME_FILES=200` tries more; a failure prints its seed and the operations. */
const files = Number(process.env['BLAME_FILES'] ?? 4);
const seed = Number(process.env['BLAME_SEED'] ?? 20261129);

type Who = 0 | 1;
type Operation =
  | { readonly is: 'replace' | 'insert' | 'delete'; readonly who: Who; readonly at: number; readonly count: number }
  | { readonly is: 'write'; readonly who: Who; readonly at: number; readonly count: number }
  | {
      readonly is: 'append' | 'sed-delete' | 'sed-change';
      readonly who: Who;
      readonly at: number;
      readonly count: number;
    }
  | { readonly is: 'outside'; readonly at: number; readonly count: number; readonly how: 'add' | 'change' | 'remove' }
  | { readonly is: 'mv' | 'git-mv' | 'mv-and-append'; readonly who: Who }
  | { readonly is: 'outside-mv' | 'commit' }
  | { readonly is: 'undo' | 'redo'; readonly who: Who };

const who = fc.constantFrom<Who>(0, 1);
const place = { at: fc.nat(40), count: fc.integer({ min: 1, max: 4 }) };
const operation: fc.Arbitrary<Operation> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ is: fc.constantFrom('replace', 'insert', 'delete'), who, ...place }) },
  { weight: 1, arbitrary: fc.record({ is: fc.constant('write'), who, ...place }) },
  { weight: 4, arbitrary: fc.record({ is: fc.constantFrom('append', 'sed-delete', 'sed-change'), who, ...place }) },
  {
    weight: 3,
    arbitrary: fc.record({
      is: fc.constant('outside'),
      how: fc.constantFrom('add', 'change', 'remove'),
      ...place,
    }),
  },
  { weight: 2, arbitrary: fc.record({ is: fc.constantFrom('mv', 'git-mv', 'mv-and-append'), who }) },
  { weight: 1, arbitrary: fc.record({ is: fc.constantFrom('outside-mv', 'commit') }) },
  { weight: 3, arbitrary: fc.record({ is: fc.constantFrom('undo', 'redo'), who }) },
);

/** `session:seq` of a call with its kind, or another kind. `early`: written before the first call, and not committed. */
interface Line {
  readonly text: string;
  readonly author: string;
}

/** Returns the kind that lines have which were written before the first call and are not committed. */
function settled(lines: readonly Line[], early: 'outside' | 'unknown'): readonly Line[] {
  return lines.map((line) => (line.author === 'early' ? { ...line, author: early } : line));
}

/** A file, and what the generator knows of it. */
class Bookkeeping {
  lines: Line[];
  name: string;
  readonly #rig: UndoRig;
  readonly #sessions: readonly RiggedSession[];
  /** The lines and names before and after each change, by session and result. */
  readonly #changes = new Map<string, { before: readonly Line[]; after: readonly Line[]; from: string; to: string }>();
  #texts = 0;
  /** The contents after the last call. */
  #recorded: string;
  /** It was moved outside, and no call has changed it since. */
  #isMoved = false;

  constructor(rig: UndoRig, name: string, lines: Line[]) {
    this.#rig = rig;
    this.#sessions = [rig, rig.another('s2')];
    this.name = name;
    this.lines = lines;
    this.#recorded = '';
  }

  get path(): string {
    return join(this.#rig.root, this.name);
  }

  async apply(operation: Operation): Promise<void> {
    switch (operation.is) {
      case 'replace':
      case 'insert':
      case 'delete':
        await this.#edit(operation);
        return;
      case 'write':
        await this.#write(operation);
        return;
      case 'append':
      case 'sed-delete':
      case 'sed-change':
        await this.#command(operation);
        return;
      case 'outside':
        this.#outside(operation);
        return;
      case 'mv':
      case 'git-mv':
      case 'mv-and-append':
        await this.#move(operation);
        return;
      case 'outside-mv': {
        // A file that is changed and moved outside, with no call in between, is another file for the log.
        if (textOf(this.lines) !== this.#recorded) return;
        this.#isMoved = true;
        const to = this.#newName();
        mkdirSync(dirname(join(this.#rig.root, to)), { recursive: true });
        renameSync(this.path, join(this.#rig.root, to));
        this.name = to;
        return;
      }
      case 'commit':
        git(this.#rig.root, 'add', '-A');
        git(this.#rig.root, 'commit', '-qm', 'Later', '--allow-empty');
        this.#commitEarlyLines();
        return;
      case 'undo':
      case 'redo':
        await this.#revert(operation.is, operation.who);
        return;
      default:
        operation satisfies never;
    }
  }

  /** Lines that are older than the first call belong to the commit once there is one. */
  #commitEarlyLines(): void {
    const committed = new Set(this.lines.flatMap(({ text, author }) => (author === 'early' ? [text] : [])));
    const known = (lines: readonly Line[]): Line[] =>
      lines.map((line) => (committed.has(line.text) ? { ...line, author: 'git' } : line));
    this.lines = known(this.lines);
    for (const [key, change] of this.#changes)
      this.#changes.set(key, { ...change, before: known(change.before), after: known(change.after) });
  }

  #fresh(): string {
    return `line ${++this.#texts} ${'abcdefgh'[this.#texts % 8] ?? ''}`;
  }

  #newName(): string {
    return `moved/${'xyz'[this.#texts % 3] ?? ''}${++this.#texts}.txt`;
  }

  async #edit({ is, who, at, count }: Extract<Operation, { count: number }> & { who: Who }): Promise<void> {
    if (this.lines.length < 3) return;
    const start = at % (this.lines.length - 1);
    const old = this.lines.slice(start, start + (is === 'insert' ? 1 : count));
    const fresh = is === 'delete' ? [] : Array.from({ length: count }, () => this.#fresh());
    const texts = is === 'insert' ? [...old.map(({ text }) => text), ...fresh] : fresh;
    await this.#call(
      who,
      'file_edit',
      {
        path: this.name,
        old_string: old.map(({ text }) => `${text}\n`).join(''),
        new_string: texts.map((text) => `${text}\n`).join(''),
      },
      (author) => {
        const kept = is === 'insert' ? old : [];
        return [
          ...this.lines.slice(0, start),
          ...kept,
          ...fresh.map((text) => ({ text, author })),
          ...this.lines.slice(start + old.length),
        ];
      },
    );
  }

  async #write({ who, at, count }: { who: Who; at: number; count: number }): Promise<void> {
    const kept = this.lines.filter((_, index) => (index + at) % 3 !== 0);
    const fresh = Array.from({ length: count }, () => this.#fresh());
    const content = [...kept.map(({ text }) => text), ...fresh].map((text) => `${text}\n`).join('');
    await this.#call(who, 'file_write', { path: this.name, content }, (author) => [
      ...kept,
      ...fresh.map((text) => ({ text, author })),
    ]);
  }

  async #command({ is, who, at }: { is: string; who: Who; at: number }): Promise<void> {
    const index = at % Math.max(1, this.lines.length);
    const text = this.#fresh();
    const change = (author: string): Line[] => [
      ...this.lines.slice(0, index),
      { text, author },
      ...this.lines.slice(index + 1),
    ];
    if (is === 'append')
      await this.#call(who, 'bash', { command: `echo '${text}' >> ${this.name}` }, (author) => [
        ...this.lines,
        { text, author },
      ]);
    else if (this.lines.length < 3) return;
    else if (is === 'sed-delete')
      await this.#call(who, 'bash', { command: `sed -i ${index + 1}d ${this.name}` }, () =>
        this.lines.toSpliced(index, 1),
      );
    else await this.#call(who, 'bash', { command: `sed -i '${index + 1}s/.*/${text}/' ${this.name}` }, change);
  }

  #outside({ at, count, how }: { at: number; count: number; how: 'add' | 'change' | 'remove' }): void {
    const start = at % (this.lines.length + 1);
    if (this.#isMoved) return;
    const author = this.#changes.size === 0 ? 'early' : 'outside';
    const fresh = how === 'remove' ? [] : Array.from({ length: count }, () => ({ text: this.#fresh(), author }));
    this.lines = this.lines.toSpliced(start, how === 'add' ? 0 : count, ...fresh);
    writeFileSync(this.path, textOf(this.lines));
  }

  async #move({ is, who }: { is: string; who: Who }): Promise<void> {
    const to = this.#newName();
    const text = this.#fresh();
    const byGit = is === 'git-mv' && git(this.#rig.root, 'ls-files', '--', this.name) !== '';
    const move = `mkdir -p moved && ${byGit ? 'git mv' : 'mv'} ${this.name} ${to}`;
    const more = is === 'mv-and-append' ? ` && echo '${text}' >> ${to}` : '';
    await this.#call(
      who,
      'bash',
      { command: move + more },
      (author) => [...this.lines, ...(more === '' ? [] : [{ text, author }])],
      to,
    );
  }

  async #call(
    who: Who,
    name: 'file_write' | 'file_edit' | 'bash',
    args: Readonly<Record<string, unknown>>,
    changed: (author: string) => Line[],
    to = this.name,
  ): Promise<void> {
    const session = this.#sessions[who];
    if (!session) return;
    const [result] = await session.run([[name, args]], `Prompt ${++this.#texts}`);
    if (!result || !isRecord(result.data) || result.data['success'] !== true) return;
    const { tool_call_id: id } = result.data;
    const call = session.session
      .events()
      .find(({ kind, data }) => kind === 'tool_call' && isRecord(data) && data['id'] === id);
    const author = `${name === 'bash' ? 'command' : 'edit'} s${who + 1}:${call?.seq ?? 0}`;
    const lines = changed(author);
    this.#changes.set(`${who}:${result.seq}`, { before: this.lines, after: lines, from: this.name, to });
    this.lines = lines;
    this.name = to;
    this.#recorded = textOf(lines);
    this.#isMoved = false;
  }

  /** Undoes or redoes the last change of a session; what that leaves alone stays in the books. */
  async #revert(kind: 'undo' | 'redo', who: Who): Promise<void> {
    const session = this.#sessions[who];
    const choice = session ? chooseReverts(session.session.events(), kind, '') : null;
    if (!session || !choice || 'problem' in choice) return;
    for (const revert of choice.reverts) {
      const known = this.#changes.get(`${who}:${revert.ofSeq}`);
      await act(session.session, revert);
      if (!known) continue;
      const [name, lines] = kind === 'undo' ? [known.from, known.before] : [known.to, known.after];
      const isDone = existsSync(join(this.#rig.root, name)) && read(join(this.#rig.root, name)) === textOf(lines);
      const isElsewhere = name !== this.name && existsSync(this.path);
      if (!isDone || isElsewhere) continue;
      this.name = name;
      this.lines = [...lines];
      this.#recorded = textOf(lines);
    }
  }
}

function textOf(lines: readonly Line[]): string {
  return lines.map(({ text }) => `${text}\n`).join('');
}

function read(path: string): string {
  return readFileSync(path, 'utf8');
}

function git(cwd: string, ...args: readonly string[]): string {
  const names = ['-c', 'user.name=T', '-c', 'user.email=t@example.com', '-c', 'commit.gpgsign=false'];
  return execFileSync('git', [...names, ...args], { cwd, encoding: 'utf8' }).trim();
}

async function blamed(rig: UndoRig, path: string): Promise<readonly Line[]> {
  const opened = await openSqliteStore({ file: rig.file, now: Date.now });
  try {
    const work = new Blame(new ChangeLog(opened.store, await opened.tables(changedFileTables)), process.env);
    const file = await work.file(path);
    if (file === null || typeof file === 'string') throw new Error(`${path}: ${file ?? 'unknown'}`);
    return file.lines.map((line) => {
      const { kind, session_id: session, seq, text } = lineJson(line);
      return { text, author: session === null ? kind : `${kind} ${session}:${seq}` };
    });
  } finally {
    await opened.store.close();
  }
}

test('each line has the author that the generator has written down', { timeout: 60_000 + files * 5000 }, async () => {
  let tried = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.boolean(),
      fc.integer({ min: 0, max: 12 }),
      fc.array(operation, { minLength: 4, maxLength: 16 }),
      async (isTracked, length, operations) => {
        const lines = Array.from({ length }, (_, index) => ({
          text: `first ${index}`,
          author: isTracked ? 'git' : 'unknown',
        }));
        const rig = await undoRig({ 'a.txt': textOf(lines), '.gitignore': 'never\n' });
        git(rig.root, 'init', '-q');
        git(rig.root, 'add', ...(isTracked ? ['-A'] : ['.gitignore']));
        git(rig.root, 'commit', '-qm', 'First');
        if (!isTracked) rmSync(join(rig.root, '.git'), { recursive: true });
        const books = new Bookkeeping(rig, 'a.txt', lines);
        for (const one of operations)
          if (isTracked || (one.is !== 'commit' && one.is !== 'git-mv')) await books.apply(one);
        expect(read(books.path)).toBe(textOf(books.lines));
        tried++;
        if (!rig.session.events().some(changesFiles) && !isTracked) return;
        expect(await blamed(rig, books.path)).toEqual(settled(books.lines, isTracked ? 'outside' : 'unknown'));
      },
    ),
    { numRuns: files, seed, endOnFailure: true },
  );
  expect(tried).toBeGreaterThanOrEqual(files);
});

function changesFiles({ kind, data }: Event): boolean {
  return kind === 'tool_result' && isRecord(data) && data['changes'] !== undefined;
}

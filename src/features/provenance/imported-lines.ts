import { isRecord } from '../../kernel/core/json.js';
import { addAll } from '../../kernel/core/lists.js';
import type { BlamedLine } from './blamed-line.js';
import type { ChangeLog } from './change-log.js';
import { argumentsOf, type CallRecord, type SessionRecord } from './session-record.js';

/** A commit may be a little older than the clock of another program says. */
const sloppyMs = 60_000;

/** Lines that a call wrote, by their texts. */
export interface KnownWrite {
  readonly call: CallRecord;
  readonly kind: 'edit' | 'command';
  readonly texts: ReadonlySet<string>;
}

/** Returns what calls of imported conversations wrote. Their log has no contents of files, but the arguments of their
 * edits name the lines. */
export async function importedWrites(
  log: ChangeLog,
  { at, names }: { readonly at: number; readonly names: readonly string[] },
): Promise<readonly KnownWrite[]> {
  const sessions: SessionRecord[] = [];
  for (const name of names) addAll(sessions, await log.importedSessions(name));
  return [...new Set(sessions)]
    .flatMap(({ calls }) => calls)
    .flatMap((call) => (call.at <= at ? writesOf(call, names) : []));
}

/** Gives lines that no call is known to have written to the last call that wrote such a line. */
export function withWriters(lines: readonly BlamedLine[], writes: readonly KnownWrite[]): readonly BlamedLine[] {
  const found = [...lines];
  for (const { call, kind, texts } of writes.toSorted((a, b) => b.call.at - a.call.at)) {
    const fits = (index: number): boolean => {
      const line = found[index];
      return line?.call === null && isNoOlder(line, call) && texts.has(line.text);
    };
    const certain = found.map((line, index) => fits(index) && line.text.trim().length > 2);
    for (const [index, line] of found.entries())
      if (certain[index] || (fits(index) && (certain[index - 1] === true || certain[index + 1] === true)))
        found[index] = { ...line, kind, call, commit: null, until: null, over: null };
  }
  return found;
}

/** Returns true if a call may have written a line. */
function isNoOlder({ commit, until }: BlamedLine, call: CallRecord): boolean {
  const at = commit?.at ?? until;
  return at === null || at + sloppyMs >= call.at;
}

function writesOf(call: CallRecord, names: readonly string[]): readonly KnownWrite[] {
  const args = argumentsOf(call);
  const path = firstText(args, ['file_path', 'path', 'filePath', 'absolute_path']);
  const patch = firstText(args, ['input', 'patch', 'patchText', 'command']);
  if (path !== null) return isNamed(path, names) ? writeOf(call, addedBy(args)) : [];
  return patch?.includes('*** Begin Patch') ? writeOf(call, addedByPatch(patch, names)) : [];
}

function writeOf(call: CallRecord, texts: ReadonlySet<string>): readonly KnownWrite[] {
  return texts.size === 0 ? [] : [{ call, kind: 'edit', texts }];
}

function isNamed(path: string, names: readonly string[]): boolean {
  const plain = path.replace(/^\.\//, '');
  return names.some((name) => name === plain || (!plain.startsWith('/') && name.endsWith(`/${plain}`)));
}

function firstText(args: Readonly<Record<string, unknown>>, keys: readonly string[]): string | null {
  for (const key of keys) {
    const value = args[key];
    if (typeof value === 'string') return value;
    if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value.join('\n');
  }
  return null;
}

/** Returns the lines of the new texts that are not in the old ones. */
function addedBy(args: Readonly<Record<string, unknown>>): ReadonlySet<string> {
  const edits = Array.isArray(args['edits']) ? (args['edits'] as readonly unknown[]).filter(isRecord) : [];
  const added = new Set<string>();
  for (const edit of [args, ...edits]) {
    const now = firstText(edit, ['content', 'new_string', 'newString', 'newText', 'new_str', 'file_text']);
    const old = new Set(firstText(edit, ['old_string', 'oldString', 'oldText', 'old_str'])?.split('\n'));
    for (const line of now?.split('\n') ?? []) if (!old.has(line)) added.add(line);
  }
  return added;
}

/** Returns the lines that a patch of Codex adds to one of the files. */
function addedByPatch(patch: string, names: readonly string[]): ReadonlySet<string> {
  const added = new Set<string>();
  let isOurs = false;
  for (const line of patch.split('\n')) {
    const header = /^\*\*\* (?:Add File|Update File|Move to): (.+)$/.exec(line);
    if (header) isOurs = isNamed(header[1]?.trim() ?? '', names);
    else if (isOurs && line.startsWith('+')) added.add(line.slice(1));
  }
  return added;
}

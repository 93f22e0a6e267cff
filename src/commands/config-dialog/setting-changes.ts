import { createHash, randomUUID } from 'node:crypto';
import { existsSync, realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { leavesOf, valueAt } from '../../kernel/config/layers.js';
import { isUsersAlone, upToRoot } from '../../kernel/config/load.js';
import {
  type ConfigProblem,
  editConfigFile,
  type FileEdit,
  parseConfigText,
  readConfigFile,
  replaceFile,
} from '../../kernel/config/settings-file.js';
import { keyText, maskValue, type SettingKey, isSection } from '../../kernel/config/settings-schema.js';
import { openTrustFile } from '../../kernel/config/trust-file.js';
import type { Settings } from '../../kernel/console/run-settings.js';
import { isRecord, type Json, parseJson } from '../../kernel/core/json.js';
import { isInside } from '../../kernel/permissions/guarded-paths.js';

/** A settings file that `/config` may write. `directory`: of a project, the one that the user trusts. */
export type Scope =
  | { readonly kind: 'user'; readonly file: string }
  | { readonly kind: 'project'; readonly file: string; readonly directory: string };

type Here = Pick<Settings, 'config' | 'loaded' | 'cwd' | 'ephemeral'>;

/** Returns the file of this project, which need not exist; null where it is the user's own, or a link out of the
 * project. */
export function projectScope({ config, loaded, cwd }: Here): Extract<Scope, { readonly kind: 'project' }> | null {
  const directory = loaded.project?.file.directory ?? upToRoot(cwd).at(-1) ?? cwd;
  const file = join(directory, '.agent', 'config.json');
  const real = realPlace(file);
  if (real === realPlace(config.files.config) || !isInside(real, realPlace(directory))) return null;
  return { kind: 'project', file, directory };
}

function realPlace(path: string): string {
  if (existsSync(path)) return realpathSync(path);
  return dirname(path) === path ? path : join(realPlace(dirname(path)), basename(path));
}

/** Returns true if a project may set the key to this value. */
export function isForProjects({ path, node }: SettingKey, value: unknown): boolean {
  const parts = isSection(node) && isRecord(value) ? leavesOf(value, { kind: 'default' }, node, path) : [{ path }];
  return !parts.some((part) => isUsersAlone(part.path));
}

/** The outcome of a change. `reason`: sentences that say why nothing was changed. */
export type ChangeResult =
  | { readonly ok: true; readonly change: SettingChange }
  | { readonly ok: false; readonly reason: string };

/** One change of a settings file, as it is kept for `/config undo`. */
export interface SettingChange {
  readonly id: string;
  readonly scope: Scope;
  readonly path: readonly string[];
  /** The outermost section that the change created, or `path`: undoing it leaves no empty section. */
  readonly created: readonly string[];
  /** The value that the file had; undefined if it had none. `hidden`: it contained a secret, so it is not kept. */
  readonly before: Json | undefined | typeof hidden;
  /** SHA-256 (hex) of the new value, by which a later change of the file is noticed. */
  readonly after: string;
}

const hidden = Symbol('hidden');
const mostKept = 20;

/** Writes one setting, or removes it (`value` undefined), and keeps what undoes it. `check` returns the problems of the
 * settings as they are on the disk; a change that causes one is reverted. */
export async function changeSetting(
  here: Here,
  scope: Scope,
  path: readonly string[],
  value: unknown,
  check: () => Promise<readonly ConfigProblem[]>,
): Promise<ChangeResult> {
  if (here.ephemeral) return { ok: false, reason: 'Not saved: --ephemeral writes nothing to disk.' };
  const known = (await check()).map(({ message }) => message);
  const edited = await write(here, scope, path, value);
  if (!edited.ok) return edited;
  const before = await valueIn(edited.before, path);
  const caused = (await check()).find(({ message }) => !known.includes(message));
  if (caused) {
    revert(scope, edited);
    return { ok: false, reason: `Not saved: ${caused.message}. ${caused.hint}` };
  }
  const created = (await newParent(edited.before, path)) ?? path;
  const change: SettingChange = { id: randomUUID(), scope, path, created, before, after: hashOf(value) };
  await keep(here, [...(await keptChanges(here)), change]);
  return { ok: true, change };
}

/** Undoes one change, the last one unless `id` names another. */
export async function undoChange(here: Here, id?: string): Promise<ChangeResult> {
  if (here.ephemeral) return { ok: false, reason: 'Nothing to undo: --ephemeral keeps no changes.' };
  const kept = await keptChanges(here);
  const change = id === undefined ? kept.at(-1) : kept.find((one) => one.id === id);
  if (!change) return { ok: false, reason: 'Nothing to undo: /config has not changed a setting.' };
  const { scope, path, before, after } = change;
  const key = keyText(path);
  const others = kept.filter((one) => one !== change);
  const refused = async (why: string): Promise<ChangeResult> => {
    await keep(here, others);
    return { ok: false, reason: `Not undone: ${why}` };
  };
  if (before === hidden)
    return await refused(
      `the earlier value of ${key} contains a secret and was not kept. Set it with /config ${key}=…`,
    );
  const content = readConfigFile(scope.file);
  const text = content.kind === 'text' ? content.text : null;
  if (hashOf(await valueIn(text, path)) !== after)
    return await refused(`${key} in ${scope.file} has been changed since.`);
  const target = before === undefined ? removedPath(change, await valueIn(text, change.created)) : path;
  const edited = await write(here, scope, target, before);
  if (!edited.ok) return edited;
  await keep(here, others);
  return { ok: true, change };
}

/** Restores the text of a file, unless something else has changed it since. */
function revert({ kind, file }: Scope, { before, after }: FileEdit): void {
  const content = readConfigFile(file);
  if (content.kind === 'text' && content.text === after) replaceFile(file, before ?? '{}\n', kind === 'project');
}

/** Returns the outermost part of `path` that a text does not have; null if it has all of it. */
async function newParent(text: string | null, path: readonly string[]): Promise<readonly string[] | null> {
  for (const end of path.keys()) {
    const part = path.slice(0, end + 1);
    if ((await valueIn(text, part)) === undefined) return part;
  }
  return null;
}

/** Returns the section to remove with the setting in it: nothing else may have come into it since. */
function removedPath({ path, created }: SettingChange, now: Json | undefined): readonly string[] {
  let section = now;
  for (const name of path.slice(created.length)) {
    if (!isRecord(section) || Object.keys(section).length !== 1) return path;
    section = section[name];
  }
  return created;
}

/** Writes a value. A project's file that the user trusts, or that did not exist, is trusted with the new text too: the
 * user made the change. */
async function write(
  { config }: Here,
  scope: Scope,
  path: readonly string[],
  value: unknown,
): Promise<FileEdit | { readonly ok: false; readonly reason: string }> {
  try {
    const edited = await editConfigFile(scope.file, path, value, scope.kind === 'project');
    if (!edited.ok) return { ok: false, reason: `Not saved: ${edited.problem.message}. ${edited.problem.hint}` };
    if (scope.kind === 'project') trustAgain(config.files.trust, scope, edited);
    return edited;
  } catch (error) {
    return { ok: false, reason: `Not saved: ${error instanceof Error ? error.message : String(error)}` };
  }
}

function trustAgain(
  trustFile: string,
  { directory, file }: Extract<Scope, { readonly kind: 'project' }>,
  { before, after }: FileEdit,
): void {
  const trust = openTrustFile(trustFile);
  const fileWith = (text: string) =>
    ({ directory, path: file, content: { kind: 'text', text }, sha256: sha256(text) }) as const;
  const wasTrusted = before === null || trust.answerFor(fileWith(before))?.trusted === true;
  if (wasTrusted && before !== after) trust.record(fileWith(after), true, Date.now());
}

async function valueIn(text: string | null, path: readonly string[]): Promise<Json | undefined> {
  const parsed = text === null ? null : await parseConfigText(text);
  return parsed?.kind === 'object' ? (valueAt(parsed.value, path) as Json | undefined) : undefined;
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function hashOf(value: unknown): string {
  return sha256(JSON.stringify(value) ?? '');
}

function undoFile({ config }: Here): string {
  return join(dirname(config.files.config), 'config-undo.json');
}

/** Reads the changes that can be undone, the oldest first. What is not as it was written is left out. */
async function keptChanges(here: Here): Promise<readonly SettingChange[]> {
  const content = readConfigFile(undoFile(here));
  if (content.kind !== 'text') return [];
  let value: unknown;
  try {
    value = parseJson(content.text);
  } catch {
    return [];
  }
  return isRecord(value) && Array.isArray(value['changes']) ? value['changes'].flatMap(keptChange) : [];
}

function keptChange(value: unknown): readonly SettingChange[] {
  if (!isRecord(value)) return [];
  const { id, file, directory, path, created, before, after_sha256: after } = value;
  if (typeof id !== 'string' || typeof file !== 'string' || typeof after !== 'string') return [];
  if (!isPath(path) || !isPath(created)) return [];
  const scope: Scope = typeof directory === 'string' ? { kind: 'project', file, directory } : { kind: 'user', file };
  const earlier = value['hidden'] === true ? hidden : (before as Json | undefined);
  return [{ id, scope, path, created, before: earlier, after }];
}

function isPath(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length > 0 && value.every((word) => typeof word === 'string');
}

async function keep(here: Here, changes: readonly SettingChange[]): Promise<void> {
  const stored = changes.slice(-mostKept).map(({ id, scope, path, created, before, after }) => {
    const isHidden = before === hidden || hasSecret(before, path);
    const { file, directory } = { directory: undefined, ...scope };
    return { id, file, directory, path, created, ...(isHidden ? { hidden: true } : { before }), after_sha256: after };
  });
  replaceFile(undoFile(here), `${JSON.stringify({ changes: stored }, null, 2)}\n`);
}

function hasSecret(value: Json | undefined, path: readonly string[]): boolean {
  return value !== undefined && JSON.stringify(maskValue(value, path)) !== JSON.stringify(value);
}

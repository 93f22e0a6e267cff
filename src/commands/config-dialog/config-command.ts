import { unknownKeyProblem, valueAt } from '../../kernel/config/layers.js';
import { loadConfig, type LoadedConfig } from '../../kernel/config/load.js';
import { keyText, maskValue, resolveKey, type SettingKey } from '../../kernel/config/settings-schema.js';
import type { CommandHandler, Repl } from '../../kernel/console/command.js';
import type { PickItem } from '../../kernel/console/slash-command.js';
import { startProblems } from '../configure.js';
import { applySetting } from './apply-setting.js';
import { askValue, readValue } from './ask-value.js';
import {
  changeSetting,
  isForProjects,
  projectScope,
  type Scope,
  type SettingChange,
  undoChange,
} from './setting-changes.js';
import {
  fixedBy,
  originAt,
  settingLines,
  type SettingRow,
  settingRows,
  settingText,
  shortValue,
} from './setting-rows.js';

/** `agent config` holds other verbs; `/config` shows and changes settings. */
export const config: CommandHandler = {
  line: { example: 'agent config set model openai/gpt-5.2' },
  slash: async (argument, repl) => {
    const words = argument.split(/\s+/).filter((word) => word !== '');
    const isProject = words.at(0) === forProject || words.at(-1) === forProject;
    const rest = isProject ? argument.trim().replace(/^--project\s*|\s*--project$/g, '') : argument.trim();
    if (rest === '') await openDialog(repl);
    else if (rest === 'undo') await undo(repl);
    else await oneSetting(rest, isProject, repl);
  },
};

const forProject = '--project';

/** `/config key`, `/config key=value` and `/config key value`. */
async function oneSetting(text: string, isProject: boolean, repl: Repl): Promise<void> {
  const { screen, settings } = repl;
  const [, name = '', value] = /^([^\s=]+)(?:\s*=\s*|\s+|$)([\s\S]+)?$/.exec(text) ?? [];
  const key = resolveKey(name);
  if (!key) {
    const { nearest } = unknownKeyProblem(name, '/config');
    const meant = nearest === undefined ? '' : ` Did you mean ${nearest}?`;
    screen.notice('error', `There is no setting ${name || text}.${meant} /config lists all.`);
    return;
  }
  if (value === undefined) {
    screen.notice('info', settingText(await loadNow(repl), key));
    return;
  }
  const read = readValue(key, value);
  const user: Scope = { kind: 'user', file: settings.config.files.config };
  const scope = isProject ? projectScope(settings) : user;
  if (!read.ok) screen.notice('error', `Not saved: ${read.reason}`);
  else if (scope === null)
    screen.notice(
      'error',
      'Not saved: .agent/config.json is your own file here, or a link out of the project. Leave out --project.',
    );
  else if (scope.kind === 'project' && !isForProjects(key, read.value))
    screen.notice(
      'error',
      `Not saved: ${keyText(key.path)} can only be set in your own settings. Leave out --project.`,
    );
  else {
    const { ok, said } = await save({ key, scope, value: read.value }, repl);
    screen.notice(ok ? 'info' : 'error', said);
  }
}

async function undo(repl: Repl): Promise<void> {
  const { ok, said } = await undoAndReport(repl);
  repl.screen.notice(ok ? 'info' : 'warn', said);
}

/** The choice of the user in the list. */
type Chosen = { readonly does: 'change'; readonly row: SettingRow } | { readonly does: 'undo' };

/** Lists all settings, changes the chosen one, and lists them again, until the user leaves. */
async function openDialog(repl: Repl): Promise<void> {
  const { screen, settings } = repl;
  const changes: SettingChange[] = [];
  const reports: string[] = [];
  let current: string | undefined;
  while (!screen.signal.aborted) {
    const now = await loadNow(repl);
    const rows = settingRows(now, settings.loaded);
    const chosen = await pickSetting(repl, { now, rows, current, canUndo: changes.length > 0, said: reports.at(-1) });
    if (chosen === null) break;
    const outcome = chosen.does === 'undo' ? await undoLast(changes, repl) : await changeRow(chosen.row, now, repl);
    if (chosen.does === 'change') current = chosen.row.key;
    if (outcome?.change && chosen.does === 'change') changes.push(outcome.change);
    if (outcome) reports.push(outcome.said);
  }
  // The list is gone from the screen with its last line, so the reports are printed.
  for (const report of reports) screen.print(report);
}

interface Listed {
  readonly now: LoadedConfig;
  readonly rows: readonly SettingRow[];
  readonly current: string | undefined;
  readonly canUndo: boolean;
  readonly said: string | undefined;
}

async function pickSetting({ screen }: Repl, { now, rows, current, canUndo, said }: Listed): Promise<Chosen | null> {
  const undoing: Chosen = { does: 'undo' };
  const items = rows.map((row): PickItem<Chosen> => ({
    label: row.key,
    detail: [shortValue(row.value), row.source, row.needsRestart ? 'after a restart' : '']
      .filter((part) => part !== '')
      .join(' · '),
    also: row.node.description ?? '',
    value: { does: 'change', row },
  }));
  const undoItem: PickItem<Chosen> = { label: 'Undo', detail: 'the last change made here', value: undoing };
  const selected = items.find(({ label }) => label === current)?.value;
  return await screen.pick<Chosen>({
    title: 'Settings',
    items: canUndo ? [...items, undoItem] : items,
    ...(selected ? { current: selected } : {}),
    ...(said === undefined ? {} : { said }),
    ...(canUndo ? { keys: { u: { does: 'undo', value: undoing } } } : {}),
    listing: settingLines(now),
  });
}

/** The outcome of a change, as sentences. */
interface Outcome {
  readonly ok: boolean;
  readonly said: string;
  readonly change?: SettingChange;
}

async function changeRow(row: SettingRow, now: LoadedConfig, repl: Repl): Promise<Outcome | null> {
  const chosen = await askValue(row, now, repl);
  if (chosen === null) return null;
  const scope = await askScope(row, chosen.value, now, repl);
  return scope && (await save({ key: row, scope, value: chosen.value }, repl));
}

/** Asks which file a value is for. Keys that a project may not set are for all projects. */
async function askScope(
  key: SettingKey,
  value: unknown,
  now: LoadedConfig,
  { settings, screen }: Repl,
): Promise<Scope | null> {
  const user: Scope = { kind: 'user', file: settings.config.files.config };
  const project = isForProjects(key, value) ? projectScope({ ...settings, loaded: now }) : null;
  if (project === null) return user;
  const origin = originAt(now, key.path);
  const isShared = now.project !== null && !now.project.trusted && now.project.file.path === project.file;
  return await screen.pick<Scope>({
    title: `${keyText(key.path)}: where?`,
    items: [
      {
        label: 'For all projects',
        detail: origin.kind === 'project' ? 'this project still sets it' : user.file,
        value: user,
      },
      {
        label: 'Only in this project',
        detail: isShared ? `${project.file}, which you have not trusted` : project.file,
        value: project,
      },
    ],
    current: origin.kind === 'project' ? project : user,
    said: `The file of a project counts for everyone who has the repository. For this session alone: options, --set, and the commands with --session. ${fixedBy(origin)}`.trim(),
  });
}

interface Wanted {
  readonly key: SettingKey;
  readonly scope: Scope;
  readonly value: unknown;
}

/** Writes a value, applies it, and says what happened. */
async function save({ key, scope, value }: Wanted, repl: Repl): Promise<Outcome> {
  const { settings } = repl;
  const before = await loadNow(repl);
  const here = { ...settings, loaded: before };
  const result = await changeSetting(here, scope, key.path, value, () => problemsNow(repl));
  if (!result.ok) return { ok: false, said: result.reason };
  const done =
    value === undefined
      ? `Removed ${keyText(key.path)} from ${scope.file}.`
      : `Saved to ${scope.file}: ${keyText(key.path)} = ${JSON.stringify(maskValue(value, key.path))}.`;
  const effect = await effectOf({ key, scope, value }, before, repl);
  return { ok: true, said: `${done} ${effect}`.trim(), change: result.change };
}

/** Applies the change where it counts now. Returns what the user must know about its effect. */
async function effectOf({ key, scope, value }: Wanted, before: LoadedConfig, repl: Repl): Promise<string> {
  const now = await loadNow(repl);
  const origin = originAt(now, key.path);
  const fixed = fixedBy(origin);
  if (fixed !== '') return fixed;
  if (scope.kind === 'user' && origin.kind === 'project') return 'The settings of this project override it here.';
  if (scope.kind === 'project' && value !== undefined && origin.kind !== 'project')
    return 'It does not count yet: this file is not trusted. Review it with agent config trust.';
  const [earlier, present] = [before, now].map(({ values }) => valueAt(values, key.path));
  if (JSON.stringify(earlier) === JSON.stringify(present)) return '';
  return (await applySetting(keyText(key.path), present, repl)) ? '' : 'Restart agent to use it.';
}

/** Undoes the last change of this dialog. */
async function undoLast(changes: SettingChange[], repl: Repl): Promise<Outcome> {
  const last = changes.pop();
  return await undoAndReport(repl, last?.id);
}

async function undoAndReport(repl: Repl, id?: string): Promise<Outcome> {
  const before = await loadNow(repl);
  const result = await undoChange({ ...repl.settings, loaded: before }, id);
  if (!result.ok) return { ok: false, said: result.reason };
  const { scope, path, before: value } = result.change;
  const key = resolveKey(keyText(path));
  const text = value === undefined ? 'not set' : JSON.stringify(maskValue(value, path));
  const effect = key ? await effectOf({ key, scope, value }, before, repl) : '';
  return { ok: true, said: `Undone in ${scope.file}: ${keyText(path)} is ${text} again. ${effect}`.trim() };
}

/** Reads the settings as they are on the disk. */
async function loadNow({ line, settings }: Pick<Repl, 'line' | 'settings'>): Promise<LoadedConfig> {
  return await loadConfig({ ...line.request, cwd: settings.cwd });
}

async function problemsNow(repl: Pick<Repl, 'line' | 'settings'>): ReturnType<typeof startProblems> {
  return await startProblems(await loadNow(repl), repl.line.tools);
}

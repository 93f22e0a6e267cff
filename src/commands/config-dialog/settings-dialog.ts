import type { LoadedConfig } from '../../kernel/config/load.js';
import { keyText, type SettingKey } from '../../kernel/config/settings-schema.js';
import type { Repl } from '../../kernel/console/command.js';
import type { PickItem } from '../../kernel/console/slash-command.js';
import { isLive } from './apply-setting.js';
import { askValue } from './ask-value.js';
import { loadNow, type SaveReport, saveSetting, setForSession, undoSetting } from './save-setting.js';
import { isForProjects, projectScope, type Scope, type SettingChange } from './setting-changes.js';
import { fixedBy, originAt, settingLines, type SettingRow, settingRows, shortValue } from './setting-rows.js';

/** The choice of the user in the list. */
type Chosen = { readonly does: 'change'; readonly row: SettingRow } | { readonly does: 'undo' };

/** Lists all settings, changes the chosen one, and lists them again, until the user leaves. */
export async function openSettingsDialog(repl: Repl): Promise<void> {
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

async function changeRow(row: SettingRow, now: LoadedConfig, repl: Repl): Promise<SaveReport | null> {
  const chosen = await askValue(row, now, repl);
  if (chosen === null) return null;
  const scope = await askScope(row, chosen.value, now, repl);
  if (scope === 'session') return await setForSession(row, chosen.value, repl);
  return scope && (await saveSetting({ key: row, scope, value: chosen.value }, repl));
}

/** Asks what a value is for: a file of settings, or this session. Where only one is possible, it does not ask. */
async function askScope(
  key: SettingKey,
  value: unknown,
  now: LoadedConfig,
  { settings, screen }: Repl,
): Promise<Scope | 'session' | null> {
  const user: Scope = { kind: 'user', file: settings.config.files.config };
  const project = isForProjects(key, value) ? projectScope({ ...settings, loaded: now }) : null;
  const origin = originAt(now, key.path);
  const ofProject = project === null ? [] : [projectItem(project, now)];
  const ofSession = isLive(keyText(key.path)) && value !== undefined ? [sessionItem] : [];
  if (ofProject.length + ofSession.length === 0) return user;
  const forAll = origin.kind === 'project' ? 'this project still sets it' : user.file;
  const shared = project === null ? '' : 'The file of a project counts for everyone who has the repository.';
  return await screen.pick<Scope | 'session'>({
    title: `${keyText(key.path)}: where?`,
    items: [{ label: 'For all projects', detail: forAll, value: user }, ...ofProject, ...ofSession],
    current: origin.kind === 'project' && project !== null ? project : user,
    said: `${shared} ${fixedBy(origin)}`.trim(),
  });
}

function projectItem(project: Extract<Scope, { readonly kind: 'project' }>, now: LoadedConfig): PickItem<Scope> {
  const isShared = now.project !== null && !now.project.trusted && now.project.file.path === project.file;
  return {
    label: 'Only in this project',
    detail: isShared ? `${project.file}, which you have not trusted` : project.file,
    value: project,
  };
}

const sessionItem = {
  label: 'Only in this session',
  detail: 'nothing is written',
  value: 'session',
} satisfies PickItem<'session'>;

/** Undoes the last change of this dialog. */
async function undoLast(changes: SettingChange[], repl: Repl): Promise<SaveReport> {
  const last = changes.pop();
  return await undoSetting(repl, last?.id);
}

import { unknownKeyProblem } from '../../kernel/config/layers.js';
import { keyText, resolveKey, type SettingKey } from '../../kernel/config/settings-schema.js';
import type { CommandHandler, Repl } from '../../kernel/console/command.js';
import { readValue } from './ask-value.js';
import { loadNow, saveSetting, setForSession, undoSetting } from './save-setting.js';
import { isForProjects, projectScope, type Scope } from './setting-changes.js';
import { settingText } from './setting-rows.js';
import { openSettingsDialog } from './settings-dialog.js';

/** `agent config` holds other verbs; `/config` shows and changes settings. */
export const config: CommandHandler = {
  line: { example: 'agent config set model openai/gpt-5.2' },
  slash: async (argument, repl) => {
    const words = argument.split(/\s+/).filter((word) => word !== '');
    const place = places.find((word) => words.at(0) === word || words.at(-1) === word);
    const rest = argument.replace(new RegExp(`^\\s*${place}|${place}\\s*$`, 'g'), '').trim();
    if (rest === '') await openSettingsDialog(repl);
    else if (rest === 'undo') await undo(repl);
    else await oneSetting(rest, place, repl);
  },
};

/** The places of a value besides the user's own settings. */
const places = ['--project', '--session'] as const;
type Place = (typeof places)[number] | undefined;

/** `/config key`, `/config key=value` and `/config key value`. */
async function oneSetting(text: string, place: Place, repl: Repl): Promise<void> {
  const { screen } = repl;
  const [, name = '', value] = /^([^\s=]+)(?:\s*=\s*|\s+|$)([\s\S]+)?$/.exec(text) ?? [];
  const key = resolveKey(name);
  if (!key) {
    const { nearest } = unknownKeyProblem(name, '/config');
    const meant = nearest === undefined ? '' : ` Did you mean ${nearest}?`;
    screen.notice('error', `There is no setting ${name || text}.${meant} /config lists all.`);
  } else if (value === undefined) screen.notice('info', settingText(await loadNow(repl), key));
  else await setOne(key, value, place, repl);
}

async function setOne(key: SettingKey, text: string, place: Place, repl: Repl): Promise<void> {
  const { screen, settings } = repl;
  const read = readValue(key, text);
  const user: Scope = { kind: 'user', file: settings.config.files.config };
  const scope = place === '--project' ? projectScope(settings) : user;
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
    const { ok, said } = await (place === '--session'
      ? setForSession(key, read.value, repl)
      : saveSetting({ key, scope, value: read.value }, repl));
    screen.notice(ok ? 'info' : 'error', said);
  }
}

async function undo(repl: Repl): Promise<void> {
  const { ok, said } = await undoSetting(repl);
  repl.screen.notice(ok ? 'info' : 'warn', said);
}

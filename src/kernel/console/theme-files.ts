import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import {
  type AgentPaths,
  type ConfigProblem,
  fileProblem,
  parseConfigText,
  readConfigFile,
} from '../config/settings-file.js';
import type { Issue } from '../config/settings-schema.js';
import { isRecord } from '../core/json.js';
import { didYouMean, nearestName } from '../core/text.js';
import { type CustomTheme, parseStyle, type Role, roles, type TextStyle } from './theme.js';
import { checkTheme } from '../config/settings-check.js';

/** The names that need no file. */
export const ownThemes: readonly string[] = ['auto', 'dark', 'light', 'none'];

export type LoadedTheme =
  | { readonly ok: true; readonly theme: CustomTheme }
  | { readonly ok: false; readonly problem: ConfigProblem };

const hint = 'docs/configuration.md describes themes.';
const styleReason =
  'must be words such as "bold", "underline" and one colour: a name ("red", "bright-red"), ' +
  'a number up to 255 or "#rrggbb"';

/** Returns the folder of the user's themes, which is beside the configuration. */
export function themesFolder({ config }: Pick<AgentPaths, 'config'>): string {
  return join(dirname(config), 'themes');
}

export function themeNames(files: Pick<AgentPaths, 'config'>): readonly string[] {
  try {
    return readdirSync(themesFolder(files))
      .flatMap((name) => /^([A-Za-z0-9][\w-]*)\.json$/.exec(name)?.[1] ?? [])
      .filter((name) => !ownThemes.includes(name))
      .toSorted();
  } catch {
    return [];
  }
}

/** Loads a theme of the user by its name. A problem names the file, the place and the key. */
export async function loadTheme(name: string, files: Pick<AgentPaths, 'config'>): Promise<LoadedTheme> {
  const path = join(themesFolder(files), `${name}.json`);
  const content = readConfigFile(path);
  const known = [...ownThemes, ...themeNames(files)];
  if (content.kind === 'missing')
    return wrong(
      path,
      `ui.theme: there is no theme ${name}`,
      `${didYouMean(name, known)} Known: ${known.join(', ')}. A custom theme would be ${path}.`.trim(),
    );
  if (content.kind === 'unreadable') return wrong(path, `${path}: ${content.reason}`, 'Make it a readable file.');
  const parsed = await parseConfigText(content.text);
  if (parsed.kind === 'broken')
    return wrong(
      path,
      `${path}:${parsed.position.line}:${parsed.position.column}: not valid JSON: ${parsed.reason}`,
      'Correct it there; comments and trailing commas are allowed.',
    );
  const [issue] = [...checkTheme(parsed.value).map(suggestKey), ...styleIssues(parsed.value)];
  if (issue) return { ok: false, problem: { ...(await fileProblem(path, content.text, issue)), hint } };
  return {
    ok: true,
    theme: { base: parsed.value.base === 'light' ? 'light' : 'dark', styles: stylesOf(parsed.value) },
  };
}

function wrong(where: string, message: string, todo: string): LoadedTheme {
  return { ok: false, problem: { message, hint: todo, key: '', where } };
}

/** Suggests keys of a theme for an unknown key, and not keys of the settings. */
function suggestKey(issue: Issue): Issue {
  return issue.unknown
    ? { ...issue, nearest: nearestName(String(issue.path.at(-1)), issue.path.length > 1 ? roles : ['base', 'colors']) }
    : issue;
}

function styleIssues(value: Readonly<Record<string, unknown>>): readonly Issue[] {
  return entriesOf(value).flatMap(([role, text]) =>
    typeof text !== 'string' || parseStyle(text)
      ? []
      : [
          {
            path: ['colors', role],
            reason: `${styleReason}, not ${JSON.stringify(text.slice(0, 60))}`,
            unknown: false,
            nearest: null,
          },
        ],
  );
}

function stylesOf(value: Readonly<Record<string, unknown>>): Readonly<Partial<Record<Role, TextStyle>>> {
  return Object.fromEntries(
    entriesOf(value).flatMap(([role, text]) => {
      const style = typeof text === 'string' ? parseStyle(text) : null;
      return style ? [[role, style]] : [];
    }),
  );
}

function entriesOf(value: Readonly<Record<string, unknown>>): readonly (readonly [string, unknown])[] {
  return isRecord(value.colors) ? Object.entries(value.colors) : [];
}

import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { readForeignSettings, recordIn, type SettingsFields } from '../../kernel/config/foreign-settings.js';
import { editJsonFile, parseConfigText, readConfigFile } from '../../kernel/config/settings-file.js';
import { ownFolder } from '../../kernel/console/import-files.js';
import {
  type Importer,
  type ImportHost,
  type ImportItem,
  type ImportPlan,
  type ImportProgram,
  planSource,
  skipItem,
  type SourcePlace,
  unreadableSource,
} from '../../kernel/console/importer.js';
import { foldersOfProgram, foreignTarget, isReadInPlace } from '../../kernel/console/program-folders.js';
import type { Settings } from '../../kernel/console/run-settings.js';
import { oneLine } from '../../kernel/config/front-matter.js';
import { readHookFile } from './listed-hooks.js';

/** Imports hooks of other programs into `hooks.json` of the user. */
export const hookImporter: Importer = { kind: 'hooks', plan: planHooks };

/** A hook as it is written, with the event and the matcher that it belongs to. */
interface WrittenHook {
  readonly event: string;
  /** Undefined: its group has none. */
  readonly matcher: unknown;
  readonly entry: unknown;
}

interface HookFiles {
  /** Below the folder of the program. */
  readonly names: readonly string[];
  /** Names that only projects have. */
  readonly projectNames?: readonly string[];
  /** The reason why none of them works here. */
  readonly unlike?: string;
  readonly translate?: (hook: WrittenHook) => WrittenHook;
}

/** Sources: the documentation of the programs on hooks, read 2026-11. Those of Codex and Qwen Code have the form of
 * Claude Code. */
const programs: Readonly<Partial<Record<ImportProgram, HookFiles>>> = {
  'claude-code': { names: ['settings.json'], projectNames: ['settings.local.json'] },
  codex: { names: ['hooks.json', 'config.toml'] },
  qwen: { names: ['settings.json'], translate: fromQwen },
  gemini: {
    names: ['settings.json'],
    unlike: 'hooks of Gemini CLI read other events and names of tools; write it anew for hooks.json',
  },
  cursor: {
    names: ['hooks.json'],
    unlike: 'hooks of Cursor read and print another JSON; write it anew for hooks.json',
  },
};

async function planHooks({ settings, programs: wanted }: ImportHost): Promise<readonly ImportPlan[]> {
  const target = await createHookImport(settings);
  return wanted.flatMap((program) => {
    const files = programs[program];
    if (!files) return [];
    return foldersOfProgram(program, settings).flatMap(({ folder, scope }) =>
      namesIn(files, scope).flatMap((name): readonly ImportPlan[] => {
        const place: SourcePlace = { program, kind: 'hooks', path: join(folder, name), scope };
        const isLive =
          program === 'claude-code' && (scope === 'project' || (target.isTrusted && isReadInPlace(folder, settings)));
        try {
          const content = readForeignSettings(place.path) ?? {};
          const items = hooksIn(content).map((hook) => itemOf(hook, { files, place, isLive, content }, target));
          return items.length === 0 ? [] : [planSource(place, items)];
        } catch (error) {
          return [unreadableSource(place, 'file', error)];
        }
      }),
    );
  });
}

function namesIn({ names, projectNames = [] }: HookFiles, scope: SourcePlace['scope']): readonly string[] {
  return scope === 'user' ? names : [...names, ...projectNames];
}

/** The file that a hook is in. */
interface HookOrigin {
  readonly files: HookFiles;
  readonly place: SourcePlace;
  /** The hooks are used where they are. */
  readonly isLive: boolean;
  readonly content: SettingsFields;
}

function itemOf(given: WrittenHook, { files, place, isLive, content }: HookOrigin, target: HookImport): ImportItem {
  const name = nameOf(given);
  if (files.unlike !== undefined) return skipItem(name, files.unlike);
  if (isLive) return { name, state: 'exists' };
  if (content['disableAllHooks'] === true) return skipItem(name, 'disableAllHooks switches it off there');
  if (place.scope === 'project')
    return skipItem(name, 'it would run in every project; put it into .agent/hooks.json of this one');
  const hook = files.translate?.(given) ?? given;
  const { problems } = readHookFile(fileOf(hook), { path: place.path, origin: 'user', directory: '/', home: '/' });
  return problems[0] === undefined ? target.item(name, hook) : skipItem(name, problems[0]);
}

function nameOf({ event, entry }: WrittenHook): string {
  const { command, prompt, url } = recordIn(entry);
  const what: unknown = [command, prompt, url].find((text) => text !== undefined) ?? '';
  return oneLine(`${event} ${typeof what === 'string' ? what : JSON.stringify(what)}`, 100);
}

/** The content of a file with one hook. */
function fileOf({ event, matcher, entry }: WrittenHook): SettingsFields {
  return { hooks: { [event]: [{ ...(matcher === undefined ? {} : { matcher }), hooks: [entry] }] } };
}

/** Lists the hooks of a file. Cursor writes them without groups. */
function hooksIn(content: SettingsFields): readonly WrittenHook[] {
  return Object.entries(recordIn(content['hooks'])).flatMap(([event, groups]) =>
    (Array.isArray(groups) ? (groups as readonly unknown[]) : []).flatMap((group): readonly WrittenHook[] => {
      const { matcher, hooks } = recordIn(group);
      if (!Array.isArray(hooks)) return [{ event, matcher, entry: group }];
      return hooks.map((entry: unknown) => ({ event, matcher, entry }));
    }),
  );
}

/** Names of tools in matchers of Qwen Code, and those of Claude Code. */
const qwenTools: Readonly<Record<string, string>> = {
  run_shell_command: 'Bash',
  read_file: 'Read',
  write_file: 'Write',
  edit: 'Edit',
  glob: 'Glob',
  grep_search: 'Grep',
  web_fetch: 'WebFetch',
};

/** Qwen Code counts the time of commands in milliseconds, and has another name for the folder of the project. */
function fromQwen({ event, matcher, entry }: WrittenHook): WrittenHook {
  const { timeout, ...rest } = recordIn(entry);
  const isInMs = rest['type'] === 'command' && typeof timeout === 'number';
  const names = typeof matcher === 'string' ? matcher.replaceAll(/\w+/g, (word) => qwenTools[word] ?? word) : matcher;
  const { command } = rest;
  const work =
    typeof command === 'string' ? { command: command.replaceAll(/\bQWEN_PROJECT_DIR\b/g, 'CLAUDE_PROJECT_DIR') } : {};
  const limit = isInMs ? { timeout: Math.max(1, Math.round(timeout / 1000)) } : { timeout };
  return { event, matcher: names, entry: { ...rest, ...work, ...(timeout === undefined ? {} : limit) } };
}

interface HookImport {
  /** Hooks of Claude Code in the home folder of the user run already. */
  readonly isTrusted: boolean;
  item(name: string, hook: WrittenHook): ImportItem;
}

async function createHookImport(settings: Settings): Promise<HookImport> {
  const file = join(ownFolder(settings), 'hooks.json');
  const { hooks: known, problem } = await ownHooks(file);
  const foreign = foreignTarget(file, settings);
  const planned = [...known];
  return {
    isTrusted: settings.projects.answerFor(settings, await settings.projects.userFiles(settings)) === true,
    item: (name, hook) => {
      if (planned.some((other) => isSameHook(other, hook))) return { name, state: 'exists' };
      if (problem !== null || foreign !== null) return skipItem(name, problem ?? foreign ?? '');
      planned.push(hook);
      return { name, state: 'take', take: async () => await addHook(file, hook) };
    },
  };
}

function isSameHook(one: WrittenHook, other: WrittenHook): boolean {
  const matcherOf = ({ matcher }: WrittenHook): unknown => (matcher === '*' ? '' : (matcher ?? ''));
  return one.event === other.event && matcherOf(one) === matcherOf(other) && isDeepStrictEqual(one.entry, other.entry);
}

interface OwnHooks {
  readonly content: SettingsFields;
  readonly hooks: readonly WrittenHook[];
  /** The reason why the file cannot be changed. */
  readonly problem: string | null;
}

async function ownHooks(file: string): Promise<OwnHooks> {
  const text = readConfigFile(file);
  const none = { content: {}, hooks: [] };
  if (text.kind === 'missing') return { ...none, problem: null };
  const parsed = text.kind === 'text' ? await parseConfigText(text.text) : text;
  if (parsed.kind !== 'object') return { ...none, problem: `${file} cannot be changed: ${parsed.reason}` };
  return { content: parsed.value, hooks: hooksIn(parsed.value), problem: null };
}

/** Adds a hook behind those of its event. */
async function addHook(file: string, hook: WrittenHook): Promise<void> {
  const { content, hooks, problem } = await ownHooks(file);
  if (problem !== null) throw new Error(problem);
  if (hooks.some((other) => isSameHook(other, hook))) return;
  const groups = recordIn(content['hooks'])[hook.event];
  const [added] = Object.values(recordIn(fileOf(hook)['hooks'])).flat();
  const next = [...(Array.isArray(groups) ? (groups as readonly unknown[]) : []), added];
  const edited = await editJsonFile(file, ['hooks', hook.event], next);
  if (!edited.ok) throw new Error(edited.problem.message);
}

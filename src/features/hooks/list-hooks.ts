import { dirname } from 'node:path';
import {
  checkVerb,
  type List,
  listedFile,
  type Listing,
  listVerb,
  notTrusted,
  showVerb,
  unknownName,
} from '../../kernel/console/listed-files.js';
import type { TrustedHere } from '../../kernel/config/project.js';
import type { CommandHandler } from '../../kernel/console/command.js';
import { columns } from '../../kernel/console/line-output.js';
import { namedFiles } from './listed-hooks.js';
import { type ListedHooks, listHooks as listedHooks } from './open-hooks.js';

async function findHooks(settings: TrustedHere): Promise<HooksHere> {
  return { ...(await listedHooks(settings)), folder: dirname(settings.config.files.config) };
}

/** `folder`: where the user's own hooks are read from. */
interface HooksHere extends ListedHooks {
  readonly folder: string;
}

type ListedHook = ListedHooks['hooks'][number];

function hookListing({ hooks, problems, folder }: HooksHere): Listing {
  return { rows: hooks.map(hookRow), lines: hookLines(hooks, folder), problems };
}

function hookRow(hook: ListedHook): Readonly<Record<string, unknown>> {
  const { event, matcher, type, command, args, headers, timeoutMs, required, from, counts } = hook;
  const { sha256, missing } = namedFiles(hook);
  const listed = listedFile({ name: event, origin: from.origin, path: from.path }, counts ? null : notTrusted);
  const what = { event, matcher, type, command, args: args ?? null, headers: headers ? Object.keys(headers) : null };
  const when = { timeout_s: timeoutMs / 1000, required, if: hook.condition ?? null };
  return { ...listed, ...what, ...when, sha256, missing, background: hook.background ?? null };
}

function inBackground({ background }: ListedHook): string {
  return background === undefined ? '' : ' (in the background)';
}

function hookLines(hooks: ListedHooks['hooks'], folder: string): readonly string[] {
  if (hooks.length === 0)
    return [
      `No hooks. They are read from ${folder}/hooks.json, from ~/.claude/settings.json, and from .claude/settings.json of a project that you trust.`,
    ];
  return columns(
    hooks.map((hook) => {
      const { sha256, missing } = namedFiles(hook);
      const gone = missing.length === 0 ? '' : ` (missing: ${missing.join(', ')})`;
      const aside = hook.counts ? '' : ' (not trusted, not run: review it with agent config trust)';
      const command = [hook.command, ...(hook.args ?? [])].join(' ');
      const names = hook.matcher === '' ? '*' : hook.matcher;
      const matcher = `${names}${hook.condition === undefined ? '' : ` if ${hook.condition}`}`;
      const shown = `${command}${inBackground(hook)}${gone}${aside}`;
      return [hook.event, matcher, hook.from.origin, sha256.slice(0, 12), shown];
    }),
  );
}

const hooksOf: List = async ({ settings }) => hookListing(await findHooks(await settings()));

export const listHooks: CommandHandler = listVerb('agent hooks list --json', hooksOf);

export const hooks: CommandHandler = {
  ...listHooks,
  slash: async (_argument, { screen, settings }) => {
    const { lines, problems } = hookListing(await findHooks(settings));
    for (const problem of problems) screen.notice('warn', problem);
    screen.print(lines.join('\n'));
  },
};

/** Shows the hooks of an event. */
export const showHooks: CommandHandler = showVerb('agent hooks show PreToolUse', async ({ settings }, name) => {
  const { hooks } = await findHooks(await settings());
  const ofEvent = hooks.filter(({ event }) => event === name);
  if (ofEvent.length === 0)
    throw unknownName(
      'hook',
      name,
      hooks.map(({ event }) => event),
    );
  const rows = ofEvent.map(hookRow);
  const lines = rows.map((row) =>
    Object.entries(row)
      .map(([key, value]) => `${key}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
      .join('\n'),
  );
  return { row: rows, lines: [lines.join('\n\n')] };
});

/** Missing files of a hook are problems, too: the hook fails each time it is called. */
export const checkHooks: CommandHandler = checkVerb('agent hooks check', 'hooks', async ({ settings }) => {
  const listed = await findHooks(await settings());
  const missing = listed.hooks.flatMap((hook) =>
    namedFiles(hook).missing.map((file) => `${hook.from.path}: ${hook.event}: ${file} does not exist`),
  );
  return hookListing({ ...listed, problems: [...listed.problems, ...missing] });
});

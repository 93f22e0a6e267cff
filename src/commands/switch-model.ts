import { withCommandKey } from '../kernel/secrets/key-commands.js';
import type { Event } from '../kernel/core/event.js';
import { isRecord } from '../kernel/core/json.js';
import type { ModelRef } from '../kernel/core/projection.js';
import { type ApprovalMode, approvalNames, readApproval } from '../kernel/core/policy.js';
import { didYouMean } from '../kernel/core/text.js';
import {
  builtInPresets,
  firstWithKey,
  mergePresets,
  type ModelMeant,
  resolveProvider,
} from '../kernel/providers/catalog.js';
import { findLocalServers, type ListedModel, listModels } from '../kernel/providers/discover.js';
import { findModel, knownModels, type ModelFacts } from '../kernel/providers/models.js';
import type { PickItem } from '../kernel/console/slash-command.js';
import { CliError, type Repl, type CommandHandler } from '../kernel/console/command.js';
import type { Settings } from '../kernel/console/run-settings.js';
import { modelItem } from './add-model.js';
import { changeRoleModel, describeRoles, parseRoleRequest } from './choose-role-model.js';
import { keepOrSayHow, parseKeep, parseSession, remember } from '../kernel/console/keep-setting.js';

/** `/model`: another model for the next request, by name or from a list of what can be reached from here.
 * `/model plan=…`: another model for a role. */
export const switchModel: CommandHandler = {
  slash: async (argument, repl) => {
    const { rest, isForSession } = parseSession(argument);
    const ofRole = parseRoleRequest(rest);
    if (ofRole !== null) {
      await changeRoleModel(ofRole, repl, isForSession);
      return;
    }
    const name = rest === '' ? await pickModel(repl) : rest;
    if (name !== null) await change({ name, isForSession }, repl);
  },
};

/** A request for another model. `isForSession`: new sessions do not begin with it. */
interface Request {
  readonly name: string;
  readonly isForSession: boolean;
}

async function change({ name, isForSession }: Request, repl: Repl): Promise<void> {
  const { screen } = repl;
  const { session } = repl.sessions.current();
  const before = session.ref();
  const resolved = await repl.resolveModel(name, before);
  if (!resolved.ok) {
    screen.notice('error', `${resolved.problem.message}: ${resolved.problem.hint}`);
    return;
  }
  try {
    await session.switchModel(resolved.ref);
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    screen.notice('error', `${error.message}: ${error.hint}`);
    return;
  }
  screen.refresh();
  const { effort, ref } = resolved;
  if (effort !== undefined) await repl.tools.think(effort);
  const saved = await remember(repl, 'model', `${ref.provider}/${ref.model}`, isForSession);
  if (effort !== undefined) await remember(repl, 'effort', effort, isForSession);
  const dropped = before.provider !== ref.provider || before.api !== ref.api || before.model !== ref.model;
  const reasoning = dropped && session.recent().some(hasReasoning);
  screen.notice(
    'info',
    `Now using ${describeChoice(resolved, before)}. ${saved}` +
      (reasoning ? ' Earlier reasoning is not sent to it.' : ''),
  );
}

/** Names the chosen model, with its address where that changes, its effort, and the family by which it was chosen. */
function describeChoice({ ref, effort, family }: Extract<ModelMeant, { ok: true }>, before: ModelRef): string {
  const at = ref.baseUrl === before.baseUrl || ref.baseUrl === undefined ? '' : ` at ${ref.baseUrl}`;
  const withEffort = effort === undefined ? '' : ` with effort ${effort}`;
  return `${ref.provider}/${ref.model}${at}${withEffort}${family === undefined ? '' : ` (${family})`}`;
}

function hasReasoning({ kind, data }: Event): boolean {
  return kind === 'assistant' && isRecord(data) && 'reasoning' in data;
}

/** A model as its provider lists it, with its whole name. */
type Listed = ListedModel & { readonly name: string };

async function pickModel(repl: Repl): Promise<string | null> {
  const { settings, sessions, screen } = repl;
  const servers = await findLocalServers({
    env: settings.env,
    keys: settings.keys.all(),
    presets: builtInPresets,
    userProviders: settings.config.provider.custom,
  });
  const local = servers.flatMap(({ endpoint, models }) =>
    models.map((listed): Listed => ({ ...listed, name: `${endpoint.provider}/${listed.id}` })),
  );
  const table = Object.keys({ ...knownModels, ...settings.config.provider.models }).filter(
    (name) => !isRetired(settings, name) && reachable(settings, name),
  );
  const { provider, model } = sessions.current().session.ref();
  const current = `${provider}/${model}`;
  const live = [...local, ...(await liveModels(repl))];
  const listing = new Map(live.map((model) => [model.name, model]));
  const listed = [...live.map(({ name }) => name), ...table, 'offline/offline'];
  const names = [...new Set(listed.includes(current) ? listed : [current, ...listed])];
  if (local.length === 0 && !isConnected(settings, provider))
    screen.notice('info', 'No key is set and no local server answers; only the offline provider is there.');
  const roles = describeRoles(repl);
  return await screen.pick({
    title: roles === '' ? 'Model' : `Model (roles: ${roles})`,
    items: names.map((name) => item(settings, name, listing.get(name))),
    current,
  });
}

/** A provider that takes longer to list its models is left out: what is known of it is there. */
const longestListMs = 1_500;

/** Returns the models that providers with a key, and custom ones without, list now, each where the settings say that it is. */
async function liveModels({ settings, line }: Repl): Promise<readonly Listed[]> {
  const names = Object.keys(mergePresets(builtInPresets, settings.config.provider.custom));
  const lists = await Promise.all(
    names.map(async (name) => {
      const resolved = resolveProvider(await line.models.choice(name, 'any'));
      if (!resolved.ok || resolved.endpoint.local) return [];
      const isCustom = Object.hasOwn(settings.config.provider.custom, name);
      if (resolved.endpoint.key === null && !isCustom) return [];
      const endpoint = await withCommandKey(settings.keys.commands, resolved.endpoint);
      if ('code' in endpoint) return [];
      const live = await listModels(endpoint, settings.env, longestListMs);
      return live.ok ? live.models.map((listed) => ({ ...listed, name: `${name}/${listed.id}` })) : [];
    }),
  );
  return lists.flat();
}

/** Returns true if the provider in use is a real one, or if a key or a custom provider is there. */
function isConnected(settings: Settings, provider: string): boolean {
  const keys = { env: settings.env, keys: settings.keys.all() };
  return (
    provider !== 'offline' ||
    firstWithKey(builtInPresets, keys) !== null ||
    Object.keys(settings.config.provider.custom).some((name) => reachable(settings, `${name}/any`))
  );
}

function reachable(settings: Settings, name: string): boolean {
  return resolveProvider({
    model: name,
    env: settings.env,
    keys: settings.keys.all(),
    presets: builtInPresets,
    userProviders: settings.config.provider.custom,
  }).ok;
}

function factsOf(settings: Settings, name: string): ModelFacts | null {
  const slash = name.indexOf('/');
  return findModel(name.slice(0, slash), name.slice(slash + 1), settings.config.provider.models);
}

function isRetired(settings: Settings, name: string): boolean {
  return factsOf(settings, name)?.retired === true;
}

function item(settings: Settings, name: string, live: Listed | undefined): PickItem<string> {
  const slash = name.indexOf('/');
  const named = { contextWindow: null, ...live, provider: name.slice(0, slash), id: name.slice(slash + 1) };
  return { ...modelItem(settings, named), label: name, value: name };
}

const modes: Readonly<Record<ApprovalMode, string>> = {
  always: 'every call asks',
  mutating: 'edits and commands ask',
  dangerous: 'only dangerous calls ask',
  never: 'only secret files and protected paths ask',
};

/** Says what a mode means once it is chosen. */
function modeNotice(mode: ApprovalMode): string {
  if (mode === 'never') return 'Approvals are off. Only secret files and protected paths still ask.';
  return `Approval mode ${mode}: ${modes[mode]}.`;
}

/** `/approval`: which calls wait for a yes, from now on in this run, and with `--keep` in the next. */
export const approvalMode: CommandHandler = { slash: changeApproval };

async function changeApproval(argument: string, repl: Repl): Promise<void> {
  const { approval, screen } = repl;
  const { rest, keeps } = parseKeep(argument);
  const names = Object.keys(modes) as ApprovalMode[];
  const current = approval.planning() ? 'plan' : approval.acceptsEdits() ? 'accept-edits' : approval.mode();
  const asked =
    rest === ''
      ? await screen.pick<string>({
          title: `Approval (now ${current})`,
          items: names.map((name) => ({ label: name, detail: modes[name], value: name })),
          current: approval.mode(),
        })
      : rest;
  if (asked === null) return;
  const chosen = readApproval(asked);
  if (chosen === null) {
    const known = [...names, ...Object.keys(approvalNames)];
    screen.notice(
      'warn',
      `There is no approval mode ${asked}. ${didYouMean(asked, known)} Known: ${known.join(', ')}.`,
    );
    return;
  }
  screen.notice('info', `${switchApproval(chosen, approval)} ${await keepOrSayHow(repl, asked, keeps)}`);
  screen.refresh();
}

/** Switches to a mode, and says what it means. */
export function switchApproval(
  { mode, acceptsEdits, plan }: NonNullable<ReturnType<typeof readApproval>>,
  approval: Repl['approval'],
): string {
  const left = approval.planning() && plan !== true ? ' Plan mode is off.' : '';
  approval.plan(plan === true);
  if (acceptsEdits) {
    approval.acceptEdits();
    return `Approval mode accept-edits: edits of files in this folder run, other changes ask.${left}`;
  }
  if (mode === undefined) return 'Plan mode: read-only. /plan when you want to act on the plan.';
  approval.switchTo(mode);
  return `${modeNotice(mode)}${left}`;
}

const own = { dark: 'for a dark background', light: 'for a light background', none: 'no colors' } as const;

function isOwn(name: string): name is keyof typeof own {
  return Object.hasOwn(own, name);
}

/** `/theme`: other colours from now on, and in new sessions unless `--session` is given. */
export const chooseTheme: CommandHandler = { slash: choose };

async function choose(argument: string, repl: Repl): Promise<void> {
  const { screen, themes } = repl;
  const { rest, isForSession } = parseSession(argument);
  const names = [...Object.keys(own), ...themes.names().filter((name) => !isOwn(name))];
  const items = names.map((name): PickItem<string> => ({
    label: name,
    detail: isOwn(name) ? own[name] : 'your own',
    value: name,
  }));
  const name = rest === '' ? await screen.pick({ title: 'Theme', items, current: themes.current() }) : rest;
  if (name === null) return;
  if (!names.includes(name)) {
    const folder = themes.folder();
    const near = [didYouMean(name, names)].filter((text) => text !== '');
    screen.notice(
      'warn',
      [
        `There is no theme ${name}.`,
        ...near,
        `Known: ${names.join(', ')}.`,
        `Custom themes are read from ${folder}.`,
      ].join(' '),
    );
    return;
  }
  const tell = (problem: string): void => {
    screen.notice('error', problem);
  };
  const theme = isOwn(name) ? name : await themes.load(name, tell);
  if (theme === null) return;
  if (!screen.setTheme(theme)) {
    screen.notice('warn', 'This terminal is shown no colours (NO_COLOR, TERM=dumb or a plain screen).');
    return;
  }
  themes.chosen(name);
  const saved = await remember(repl, 'ui.theme', name, isForSession);
  screen.notice('info', `Theme ${name}. ${saved}`);
}

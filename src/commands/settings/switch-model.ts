import { resolveModel } from '../../cli/session/open-model.js';
import type { Workbench } from '../../cli/session/assemble.js';
import type { SessionDesk } from '../../cli/repl/current-session.js';
import type { Setup } from '../../cli/settings.js';
import { builtInPresets } from '../../providers/presets.js';
import { firstWithKey, resolveProvider } from '../../providers/catalog.js';
import { findLocalServers } from '../../providers/discover.js';
import { findModel, knownModels, type ModelFacts } from '../../providers/models.js';
import type { Command, CommandContext } from '../../ui/command.js';
import type { PickItem } from '../../ui/components/picker.js';
import { CliError } from '../cli-error.js';
import { keepWish, keptOrHow } from './settings-slash.js';

/** `/model`: another model for the next request, by name or from a list of what can be reached from here. */
export function modelCommand(bench: Workbench, desk: SessionDesk): Command {
  return {
    name: 'model',
    description: 'show or change the model; --keep keeps it',
    argument: '[provider/model]',
    run: async (argument, context) => {
      const { rest, keeps } = keepWish(argument);
      const chosen = rest === '' ? await pickModel(bench.setup, desk, context) : rest;
      if (chosen !== null) await change(bench, desk, { name: chosen, keeps }, context);
    },
  };
}

/** What a person asked for: another model, and whether the next sessions begin with it. */
interface Wish {
  readonly name: string;
  readonly keeps: boolean;
}

async function change(
  bench: Workbench,
  desk: SessionDesk,
  { name, keeps }: Wish,
  context: CommandContext,
): Promise<void> {
  const { setup } = bench;
  const { session } = desk.current();
  const before = session.ref();
  const resolved = resolveModel(setup, name, before);
  if (!resolved.ok) {
    context.notice('error', `${resolved.problem.message}: ${resolved.problem.hint}`);
    return;
  }
  try {
    await session.switchModel(resolved.ref);
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    context.notice('error', `${error.message}: ${error.hint}`);
    return;
  }
  context.refresh();
  const dropped =
    before.provider !== resolved.ref.provider || before.api !== resolved.ref.api || before.model !== resolved.ref.model;
  const reasoning =
    dropped &&
    session
      .events()
      .some(
        (event) =>
          event.kind === 'assistant' &&
          typeof event.data === 'object' &&
          event.data !== null &&
          'reasoning' in event.data,
      );
  const at =
    resolved.ref.baseUrl === before.baseUrl || resolved.ref.baseUrl === undefined ? '' : ` at ${resolved.ref.baseUrl}`;
  const kept = await keptOrHow(bench, 'model', `${resolved.ref.provider}/${resolved.ref.model}`, keeps);
  context.notice(
    'info',
    `The next request goes to ${resolved.ref.provider}/${resolved.ref.model}${at}. ${kept}${reasoning ? ' Reasoning of the model before is not sent to it.' : ''}`,
  );
}

async function pickModel(setup: Setup, desk: SessionDesk, context: CommandContext): Promise<string | null> {
  const servers = await findLocalServers({
    env: setup.env,
    presets: builtInPresets,
    userProviders: setup.config.provider.custom,
  });
  const local = servers.flatMap(({ endpoint, models }) => models.map((model) => `${endpoint.provider}/${model.id}`));
  const table = Object.keys({ ...knownModels, ...setup.config.provider.models }).filter(
    (name) => !isRetired(setup, name) && reachable(setup, name),
  );
  const { provider, model } = desk.current().session.ref();
  const current = `${provider}/${model}`;
  const listed = [...local, ...table, 'offline/offline'];
  const names = [...new Set(listed.includes(current) ? listed : [current, ...listed])];
  if (firstWithKey(builtInPresets, setup.env) === null && local.length === 0)
    context.notice('info', 'No key is set and no local server answers; only the offline provider is there.');
  return await context.pick({ title: 'Model', items: names.map((name) => item(setup, name)), current });
}

function reachable(setup: Setup, name: string): boolean {
  return resolveProvider({
    model: name,
    env: setup.env,
    presets: builtInPresets,
    userProviders: setup.config.provider.custom,
  }).ok;
}

function factsOf(setup: Setup, name: string): ModelFacts | null {
  const slash = name.indexOf('/');
  return findModel(name.slice(0, slash), name.slice(slash + 1), setup.config.provider.models);
}

function isRetired(setup: Setup, name: string): boolean {
  return factsOf(setup, name)?.retired === true;
}

function item(setup: Setup, name: string): PickItem<string> {
  const facts = factsOf(setup, name);
  const price = facts?.price ? `$${facts.price.input} in, $${facts.price.output} out` : '';
  const window = facts?.contextWindow ? `${Math.round(facts.contextWindow / 1000)}k` : '';
  return { label: name, detail: [window, price].filter((part) => part !== '').join(' · '), value: name };
}

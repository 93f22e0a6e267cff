import { builtInPresets, keyNames, mergePresets } from '../kernel/providers/catalog.js';
import { didYouMean } from '../kernel/core/text.js';
import type { Picking, PickItem } from '../kernel/console/slash-command.js';
import {
  CliError,
  type CommandLine,
  exit,
  type Printer,
  type Repl,
  type CommandHandler,
} from '../kernel/console/command.js';
import type { Settings } from '../kernel/console/run-settings.js';
import { keepSetting } from '../kernel/console/keep-setting.js';
import { type Asking, type ConnectedModel, connectModel, type Connecting, enterKey } from './add-model.js';
import type { KeyRefusal } from '../kernel/secrets/refused-keys.js';

/** `agent login` and `/login`: connects a model in place. */
export const login: CommandHandler = {
  slash: async (argument, repl) => {
    const words = argument.split(/\s+/).filter((word) => word !== '');
    const refusal = repl.settings.keys.refused.first();
    const provider = words.find((word) => !word.startsWith('--')) ?? null;
    if (refusal !== null && (provider === null || provider === refusal.provider)) await renew(repl, refusal);
    else await connect(repl, { provider, manual: words.includes('--manual') });
  },
  line: {
    example: 'agent login openrouter',
    options: (command) =>
      command
        .option('--model <model>', 'make this the default model without asking')
        .option('--manual', 'sign in with a browser somewhere else: paste the code it ends with'),
    run: logInOnLine,
  },
};

/** `agent logout` and `/logout`: forgets the key of a provider. */
export const logout: CommandHandler = {
  slash: async (argument, { screen, settings }) => {
    const said = await forget(settings, argument.trim(), (picking) => screen.pick(picking));
    if (said !== null) screen.notice('info', said);
  },
  line: {
    example: 'agent logout openrouter',
    run: async (line, [provider = '']) => {
      const asking = lineAsking(line);
      const said = await forget(await line.settings(), provider, (picking) => asking.pick(picking));
      if (said !== null) line.out.print(`${said}\n`);
      return exit.done;
    },
  },
};

/** The parts of the REPL that connecting needs. */
function ofRepl({ screen, settings, line }: Repl, signal?: AbortSignal): Connecting {
  return {
    settings,
    choice: (name, model) => line.models.choice(name, model),
    browse: (url) => line.machine.browse(url),
    ends: false,
    asking: {
      pick: (picking) => screen.pick(picking),
      hidden: (question) => screen.hidden({ ...question, ...(signal ? { signal } : {}) }),
      say: (level, text) => {
        screen.notice(level, text);
      },
      show: (text) => {
        screen.print(text);
      },
    },
  };
}

interface ReplLogin {
  readonly provider: string | null;
  readonly manual: boolean;
}

async function connect(repl: Repl, { provider, manual }: ReplLogin): Promise<void> {
  refuseUnknown(repl.settings, provider);
  const d = ofRepl(repl);
  const current = repl.sessions.current().session.ref();
  const connected = await connectModel(d, { provider, manual, model: null, current, title: 'Connect a model' });
  if (connected !== null) await goOn(repl, connected);
}

/** Sends the next request to the model, and keeps it for the next sessions if that is wanted. */
async function goOn(
  { sessions, resolveModel, screen, keep }: Repl,
  { provider, model }: ConnectedModel,
): Promise<void> {
  if (model === null) return;
  const name = `${provider}/${model}`;
  const { session } = sessions.current();
  const resolved = await resolveModel(name, session.ref());
  if (!resolved.ok) {
    screen.notice('error', `${resolved.problem.message}: ${resolved.problem.hint}`);
    return;
  }
  await session.switchModel(resolved.ref);
  screen.refresh();
  const keeps = await screen.pick({
    title: 'Make it the default model?',
    items: [
      { label: `Yes, new sessions start with ${name}`, value: true },
      { label: 'No, just this session', value: false },
    ],
  });
  const said = keeps === true ? await keep('model', name) : `/model ${name} makes it the default.`;
  screen.notice('info', `Now using ${name}. ${said}`);
}

/** Asks for another key in the place of one that was refused, and has the request sent again. */
async function renew(repl: Repl, refusal: KeyRefusal): Promise<void> {
  const again = await enterKey(ofRepl(repl, refusal.signal), refusal.provider, refusal.message);
  refusal.answer(again);
}

function refuseUnknown({ config }: Settings, provider: string | null): void {
  const presets = mergePresets(builtInPresets, config.provider.custom);
  if (provider === null || Object.hasOwn(presets, provider)) return;
  const names = Object.keys(presets);
  throw new CliError(
    exit.usage,
    `unknown provider \`${provider}\``,
    `${didYouMean(provider, names)} Known: ${names.join(', ')}`.trim(),
  );
}

async function logInOnLine(
  line: CommandLine,
  [provider]: readonly string[],
  options: { readonly model?: string; readonly manual?: boolean },
): Promise<number> {
  const settings = await line.settings();
  refuseUnknown(settings, provider ?? null);
  const { out } = line;
  if (!out.canAsk && provider === undefined)
    throw new CliError(
      exit.usage,
      'there is nobody to ask which provider it is',
      'Name it, and give the key on standard input: agent login openrouter <key.txt',
    );
  const connected = await connectModel(
    {
      settings,
      choice: (name, model) => line.models.choice(name, model),
      browse: (url) => line.machine.browse(url),
      ends: true,
      asking: lineAsking(line),
    },
    {
      provider: provider ?? null,
      manual: options.manual === true,
      model: options.model ?? null,
      title: 'Connect a model',
    },
  );
  if (connected === null) return exit.credentials;
  if (connected.model !== null)
    await keepModel(line, settings, { name: `${connected.provider}/${connected.model}`, asks: !options.model });
  return exit.done;
}

async function keepModel(
  { out }: CommandLine,
  settings: Settings,
  { name, asks }: { readonly name: string; readonly asks: boolean },
): Promise<void> {
  const wanted = !asks || (out.canAsk && !/^n/i.test((await out.ask(`Make ${name} the default? [Y/n] `)).trim()));
  if (!wanted) {
    out.print(`agent -m ${name} starts with it.\n`);
    return;
  }
  out.print(`${(await keepSetting(settings, false, 'model', name)).said}\n`);
}

/** The most matches that are listed at once. */
const mostListed = 30;

/** Asks line by line. Who cannot be asked chooses nothing, and gives the key on standard input. */
function lineAsking({ out }: Pick<CommandLine, 'out'>): Asking {
  return {
    say: (level, text) => {
      if (level === 'info') out.print(`${text}\n`);
      else out.error(`agent: ${text}\n`);
    },
    show: (text) => {
      out.print(`${text}\n`);
    },
    hidden: ({ title, rows }) => out.askHidden([...rows, `${title} (not shown): `].join('\n')),
    pick: (picking) => (out.canAsk ? pickByNumber(out, picking) : Promise.resolve(null)),
  };
}

/** Lists the items with numbers. Other words than a number narrow the list down. */
async function pickByNumber<T>(out: Printer, { title, items }: Picking<T>): Promise<T | null> {
  let matches = items;
  for (;;) {
    for (const [index, { label, detail = '' }] of matches.slice(0, mostListed).entries())
      out.print(`${`${String(index + 1).padStart(3)}. ${label}  ${detail}`.trimEnd()}\n`);
    if (matches.length > mostListed) out.print(`     and ${matches.length - mostListed} more\n`);
    const answer = (await out.ask(`${title} (a number, or words to search for): `)).trim();
    if (answer === '') return null;
    const chosen = /^\d+$/.test(answer) ? matches[Number(answer) - 1] : undefined;
    if (chosen !== undefined) return chosen.value;
    const found = items.filter((item) => holdsWords(item, answer));
    const [only] = found;
    if (found.length === 1 && only !== undefined) return only.value;
    if (found.length === 0) out.error(`agent: nothing matches \`${answer}\`\n`);
    matches = found.length === 0 ? items : found;
  }
}

function holdsWords({ label, detail = '' }: PickItem<unknown>, words: string): boolean {
  const text = `${label} ${detail}`.toLowerCase();
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

/** Forgets the key of a provider, or of the one that is picked. Says what became of it; null where nothing did. */
async function forget(
  settings: Settings,
  asked: string,
  pick: (picking: Picking<string>) => Promise<string | null>,
): Promise<string | null> {
  refuseUnknown(settings, asked === '' ? null : asked);
  const kept = Object.keys(settings.keys.all());
  if (kept.length === 0 && asked === '') return 'No key is saved.';
  const [only] = kept;
  const provider =
    asked !== ''
      ? asked
      : kept.length === 1 && only !== undefined
        ? only
        : await pick({ title: 'Delete the key of', items: kept.map((name) => ({ label: name, value: name })) });
  if (provider === null) return null;
  const gone = await settings.keys.forget(provider);
  const preset = mergePresets(builtInPresets, settings.config.provider.custom)[provider];
  const variable = preset && keyNames(preset).find((name) => (settings.env[name] ?? '').trim() !== '');
  const still = variable === undefined ? '' : ` ${variable} is set in the environment and is still used.`;
  return `${gone ? `Deleted the key of ${provider}.` : `There is no saved key of ${provider}.`}${still}`;
}

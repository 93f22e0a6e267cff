import { withCommandKey } from '../kernel/secrets/key-commands.js';
import { didYouMean } from '../kernel/core/text.js';
import { builtInPresets, keyNames, mergePresets, resolveProvider } from '../kernel/providers/catalog.js';
import {
  listModels as askForModels,
  type CheckReport,
  findLocalServers,
  type ListedModel,
} from '../kernel/providers/discover.js';
import { findModel, knownModels, type ModelFacts, modelSources } from '../kernel/providers/models.js';
import { CliError, type CommandLine, exit, type CommandHandler } from '../kernel/console/command.js';
import type { Settings } from '../kernel/console/run-settings.js';
import { columns, printListing } from '../kernel/console/line-output.js';

interface Options {
  readonly json?: boolean;
  readonly provider?: string;
}

interface ModelRow {
  readonly provider: string;
  readonly model: string;
  readonly context_window: number | null;
  readonly max_output_tokens: number | null;
  readonly input_usd: number | null;
  readonly output_usd: number | null;
  /** The levels that `--effort` may have; null where that is not known. */
  readonly efforts: readonly string[] | null;
  /** No longer offered, as far as is known. */
  readonly retired: boolean;
  /** The date of the facts in the built-in table; null for a model that it does not have. */
  readonly facts_date: string | null;
  /** `table`: known here; `server`: the provider lists it. */
  readonly source: 'table' | 'server';
}

const unknownModel: ModelFacts = {
  contextWindow: null,
  maxOutputTokens: null,
  price: null,
  webSearchUsd: null,
  efforts: null,
  vision: null,
  retired: false,
};

/** Lists the models of the table and of running local servers; with `--provider` the models that this provider
 * lists. */
export const listModels: CommandHandler = {
  line: {
    example: 'agent models --provider ollama',
    options: (command) => command.option('--json', 'one JSON array'),
    run: async (line, _args, { json, provider }: Options) => {
      const settings = await line.settings();
      const rows =
        provider === undefined
          ? [...tableRows(settings), ...(await localRows(settings))]
          : await providerRows(line, provider);
      printListing(line.out, json, rows, () =>
        columns(
          rows.map((found) => [
            `${found.provider}/${found.model}`,
            found.context_window === null ? '-' : `${Math.round(found.context_window / 1000)}k`,
            price(found),
            found.retired ? `${found.source}, retired` : found.source,
          ]),
        ).concat(sourceLine()),
      );
      return exit.done;
    },
  },
};

/** Names the sources of the built-in facts and their dates. */
function sourceLine(): string {
  const sources = modelSources.map(
    ({ package: name, version, date }) => `${name} ${version}${date === undefined ? '' : ` of ${date}`}`,
  );
  return `Facts: ${sources.join(', ')}.`;
}

function price(row: ModelRow): string {
  return row.input_usd === null || row.output_usd === null
    ? 'price unknown'
    : `$${row.input_usd} in, $${row.output_usd} out per million tokens`;
}

function row(
  settings: Settings,
  provider: string,
  model: string,
  source: ModelRow['source'],
  listed: Partial<ListedModel> = {},
): ModelRow {
  const {
    contextWindow,
    maxOutputTokens,
    price: paid,
    efforts,
    retired,
  } = findModel(provider, model, settings.config.provider.models) ?? unknownModel;
  const { input = null, output = null } = paid ?? listed.price ?? {};
  const factsDate = findModel(provider, model) === null ? undefined : modelSources[0]?.date;
  return {
    provider,
    model,
    source,
    context_window: contextWindow ?? listed.contextWindow ?? null,
    max_output_tokens: maxOutputTokens,
    input_usd: input,
    output_usd: output,
    efforts,
    retired,
    facts_date: factsDate ?? null,
  };
}

function tableRows(settings: Settings): readonly ModelRow[] {
  return Object.keys({ ...knownModels, ...settings.config.provider.models }).map((name) => {
    const slash = name.indexOf('/');
    return row(settings, name.slice(0, Math.max(0, slash)), name.slice(slash + 1), 'table');
  });
}

async function localRows(settings: Settings): Promise<readonly ModelRow[]> {
  const servers = await findLocalServers({
    env: settings.env,
    keys: settings.keys.all(),
    presets: builtInPresets,
    userProviders: settings.config.provider.custom,
  });
  return servers.flatMap(({ endpoint, models }) =>
    models.map((listed) => row(settings, endpoint.provider, listed.id, 'server', listed)),
  );
}

async function providerRows({ out, models, ...line }: CommandLine, name: string): Promise<readonly ModelRow[]> {
  const settings = await line.settings();
  const presets = mergePresets(builtInPresets, settings.config.provider.custom);
  if (!Object.hasOwn(presets, name)) {
    throw new CliError(
      exit.usage,
      `unknown provider \`${name}\``,
      `${didYouMean(name, Object.keys(presets))} Known: ${Object.keys(presets).join(', ')}`.trim(),
    );
  }
  const known = tableRows(settings).filter((item) => item.provider === name);
  const resolved = resolveProvider(await models.choice(name, 'any'));
  if (!resolved.ok) {
    out.error(`agent: ${resolved.problem.message}; the list is what is known here. ${resolved.problem.hint}\n`);
    return known;
  }
  const endpoint = await withCommandKey(settings.keys.commands, resolved.endpoint);
  if ('code' in endpoint) {
    out.error(`agent: ${endpoint.message}; the list is what is known here. ${endpoint.hint ?? ''}\n`);
    return known;
  }
  const listed = await askForModels(endpoint, settings.env);
  if (listed.ok) return listed.models.map((item) => row(settings, name, item.id, 'server', item));
  out.error(`agent: ${listed.message}; the list is what is known here.\n`);
  return known;
}

interface ListProvidersOptions {
  readonly json?: boolean;
  readonly model?: string;
}

export const listProviders: CommandHandler = {
  line: {
    example: 'agent providers --json',
    options: (command) => command.option('--json', 'one JSON array'),
    run: (line, _args, options: ListProvidersOptions) => list(line, options),
  },
};

export const checkProvider: CommandHandler = {
  line: {
    example: 'agent providers check openrouter',
    options: (command) => command.option('--json', 'one JSON array'),
    run: (line, [name = ''], options: ListProvidersOptions) => check(line, name, options),
  },
};

/** Lists the presets and the user's own providers: the address of each, the variable of its key, and whether that is
 * set. Never shows a key. */
async function list({ out, settings, models }: CommandLine, { json }: ListProvidersOptions): Promise<number> {
  const { config, env, keys } = await settings();
  const kept = keys.all();
  const presets = Object.entries(mergePresets(builtInPresets, config.provider.custom));
  const rowOf = async ([name, preset]: (typeof presets)[number]) => {
    const resolved = resolveProvider(await models.choice(name, 'any'));
    const endpoint = resolved.ok ? resolved.endpoint : null;
    const variables = keyNames(preset);
    return {
      name,
      label: preset.label ?? name,
      api: endpoint?.api ?? preset.api,
      base_url: endpoint?.baseUrl ?? (preset.cloud === undefined ? preset.base_url : ''),
      key_env: variables,
      key_set: variables.some((variable) => (env[variable] ?? '').trim() !== ''),
      key_kept: Object.hasOwn(kept, name),
      key_command: preset.key_command !== undefined,
      cloud: preset.cloud?.name ?? null,
      key_required: preset.key_required !== false,
      default_model: preset.default_model,
    };
  };
  const rows = await Promise.all(presets.map(rowOf));
  printListing(out, json, rows, () =>
    columns(
      rows.map((row) => [
        row.name,
        row.api,
        credentialState(row),
        row.base_url === '' ? '-' : row.base_url,
        row.default_model ?? '-',
      ]),
    ),
  );
  return exit.done;
}

/** Returns the state of a provider's key, or the cloud whose credentials are used instead. */
function credentialState(row: Parameters<typeof keyState>[0] & { readonly cloud: string | null }): string {
  const hasKey = row.key_set || row.key_kept || row.key_command;
  return row.cloud === null || hasKey ? keyState(row) : `no key; uses the credentials of ${row.cloud}`;
}

function keyState(row: {
  readonly key_env: readonly string[];
  readonly key_set: boolean;
  readonly key_kept: boolean;
  readonly key_command: boolean;
  readonly key_required: boolean;
}): string {
  if (row.key_command)
    return row.key_set ? `${row.key_env[0] ?? ''} is set, used instead of key_command` : 'key_command prints its key';
  if (row.key_kept)
    return row.key_set ? `${row.key_env[0] ?? ''} is set, used instead of the saved key` : 'its key is saved';
  if (!row.key_set && (row.key_env.length === 0 || !row.key_required)) return 'no key needed';
  return row.key_set ? `${row.key_env[0] ?? ''} is set` : `${row.key_env.join(' or ')} is not set`;
}

interface Row {
  readonly check: string;
  readonly ok: boolean | null;
  readonly detail: string;
}

/** Sends one small request and says which parts of it worked. Exit code 0 where all did, 4 for a key, 2 for a name or a
 * model, else 1. */
async function check(
  { out, settings, models }: CommandLine,
  name: string,
  options: ListProvidersOptions,
): Promise<number> {
  const startedAt = performance.now();
  const checked = await models.check(name, modelOf(name, options.model));
  if (checked === null) {
    const row = { check: 'offline', ok: true, detail: 'the embedded provider needs no network' };
    printListing(out, options.json, [row], () => ['The embedded provider needs no network: nothing to check.']);
    return exit.done;
  }
  const { guard } = await settings();
  const mask = (text: string): string => guard.text(text);
  const { report, ref, keyFrom } = checked;
  const rows = rowsOf(report, {
    model: `${ref.provider}/${ref.model}`,
    url: checked.baseUrl,
    key: keyFrom === null ? 'none sent' : `from ${keyFrom.join(' or ')}`,
    ms: Math.round(performance.now() - startedAt),
  }).map((row) => ({ ...row, detail: mask(row.detail) }));
  printListing(out, options.json, rows, () =>
    columns(rows.map((row) => [row.ok === true ? 'ok' : row.ok === false ? 'FAILED' : '-', row.check, row.detail])),
  );
  if (report.fault === null) return report.tools === true ? exit.done : exit.failed;
  out.error(
    `agent: ${mask(report.fault.message)}\n${report.fault.hint ?? 'Check the base URL, the model and the network.'}\n`,
  );
  return report.fault.code === 'auth' ? exit.credentials : exit.failed;
}

/** `-m name/model` and `-m model` mean the same here. */
function modelOf(name: string, model: string | undefined): string | null {
  if (model === undefined) return null;
  return model.startsWith(`${name}/`) ? model.slice(name.length + 1) : model;
}

function rowsOf(
  report: CheckReport,
  at: { readonly model: string; readonly url: string; readonly key: string; readonly ms: number },
): readonly Row[] {
  const cost = report.costUsd === null ? '' : `, $${report.costUsd.toFixed(6)}`;
  const tokens =
    report.inputTokens === null
      ? 'no usage reported'
      : `${report.inputTokens} tokens in, ${report.outputTokens ?? 0} out${cost}`;
  return [
    { check: 'reached', ok: report.reached, detail: at.url },
    { check: 'auth', ok: report.auth, detail: `key: ${at.key}` },
    {
      check: 'streaming',
      ok: report.streaming,
      detail:
        report.streaming === false ? 'the server answered whole instead of streaming' : `${at.model}, ${at.ms} ms`,
    },
    {
      check: 'tools',
      ok: report.tools,
      detail:
        report.tools === false
          ? 'the model called no tool: try --set tool_protocol=text'
          : report.tools === true
            ? 'a call came back'
            : 'not seen',
    },
    { check: 'usage', ok: report.fault === null ? report.inputTokens !== null : null, detail: tokens },
  ];
}

import { providerChoice } from '../../cli/session/open-model.js';
import type { RootOptions } from '../../cli/options.js';
import { columns, printError, printListing } from '../../cli/print.js';
import { setUp, type Setup } from '../../cli/settings.js';
import { didYouMean } from '../../core/text.js';
import { builtInPresets, mergePresets } from '../../providers/presets.js';
import { resolveProvider } from '../../providers/catalog.js';
import { listModels as askForModels, findLocalServers } from '../../providers/discover.js';
import { findModel, knownModels, type ModelFacts, modelSources } from '../../providers/models.js';
import { CliError, exit } from '../cli-error.js';

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
  /** Of when the facts of the built-in table are; null for a model that it does not have. */
  readonly facts_date: string | null;
  /** `table`: known here; `server`: the provider lists it. */
  readonly source: 'table' | 'server';
}

const unknownModel: ModelFacts = {
  contextWindow: null,
  maxOutputTokens: null,
  price: null,
  efforts: null,
  retired: false,
};

/** The models of the table and of the local servers that run; with `--provider` what that provider itself lists. */
export async function listModels(options: RootOptions & { readonly json?: boolean }): Promise<number> {
  const { provider } = options;
  const setup = await setUp(options);
  const rows =
    provider === undefined ? [...tableRows(setup), ...(await localRows(setup))] : await providerRows(setup, provider);
  printListing(options.json, rows, () =>
    columns(
      rows.map((row) => [
        `${row.provider}/${row.model}`,
        row.context_window === null ? '-' : `${Math.round(row.context_window / 1000)}k`,
        price(row),
        row.retired ? `${row.source}, retired` : row.source,
      ]),
    ).concat(sourceLine()),
  );
  return exit.done;
}

/** Where the built-in facts come from, and of when they are. */
function sourceLine(): string {
  return `Facts: ${modelSources.map(({ package: name, version, date }) => `${name} ${version}${date === undefined ? '' : ` of ${date}`}`).join(', ')}.`;
}

function price(row: ModelRow): string {
  return row.input_usd === null || row.output_usd === null
    ? 'price unknown'
    : `$${row.input_usd} in, $${row.output_usd} out per million tokens`;
}

function row(
  setup: Setup,
  provider: string,
  model: string,
  source: ModelRow['source'],
  listedWindow: number | null = null,
): ModelRow {
  const {
    contextWindow,
    maxOutputTokens,
    price: paid,
    efforts,
    retired,
  } = findModel(provider, model, setup.config.provider.models) ?? unknownModel;
  const { input = null, output = null } = paid ?? {};
  const factsDate = findModel(provider, model) === null ? undefined : modelSources[0]?.date;
  return {
    provider,
    model,
    source,
    context_window: contextWindow ?? listedWindow,
    max_output_tokens: maxOutputTokens,
    input_usd: input,
    output_usd: output,
    efforts,
    retired,
    facts_date: factsDate ?? null,
  };
}

function tableRows(setup: Setup): readonly ModelRow[] {
  return Object.keys({ ...knownModels, ...setup.config.provider.models }).map((name) => {
    const slash = name.indexOf('/');
    return row(setup, name.slice(0, Math.max(0, slash)), name.slice(slash + 1), 'table');
  });
}

async function localRows(setup: Setup): Promise<readonly ModelRow[]> {
  const servers = await findLocalServers({
    env: setup.env,
    presets: builtInPresets,
    userProviders: setup.config.provider.custom,
  });
  return servers.flatMap(({ endpoint, models }) =>
    models.map((listed) => row(setup, endpoint.provider, listed.id, 'server', listed.contextWindow)),
  );
}

async function providerRows(setup: Setup, name: string): Promise<readonly ModelRow[]> {
  const presets = mergePresets(builtInPresets, setup.config.provider.custom);
  if (!Object.hasOwn(presets, name)) {
    throw new CliError(
      exit.usage,
      `unknown provider \`${name}\``,
      `${didYouMean(name, Object.keys(presets))} Known: ${Object.keys(presets).join(', ')}`.trim(),
    );
  }
  const known = tableRows(setup).filter((item) => item.provider === name);
  const resolved = resolveProvider(providerChoice(setup, { provider: name, model: 'any' }));
  if (!resolved.ok) {
    printError(`agent: ${resolved.problem.message}; the list is what is known here. ${resolved.problem.hint}\n`);
    return known;
  }
  const listed = await askForModels(resolved.endpoint, setup.env);
  if (listed.ok) return listed.models.map((item) => row(setup, name, item.id, 'server', item.contextWindow));
  printError(`agent: ${listed.message}; the list is what is known here.\n`);
  return known;
}

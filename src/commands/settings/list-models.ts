import { didYouMean } from '../../core/text.js';
import { resolveProvider } from '../../providers/catalog.js';
import { listModels as askForModels, findLocalServers } from '../../providers/discover.js';
import { findModel, knownModels, type ModelFacts, modelSources } from '../../providers/models.js';
import { builtInPresets, mergePresets } from '../../providers/presets.js';
import { CliError, type CommandLine, exit, type Settings, type Verb } from '../command.js';
import { columns, printListing } from '../line-output.js';

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
  efforts: null,
  retired: false,
};

/** Lists the models of the table and of running local servers; with `--provider` the models that this provider
 * lists. */
export const listModels: Verb = {
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
  listedWindow: number | null = null,
): ModelRow {
  const {
    contextWindow,
    maxOutputTokens,
    price: paid,
    efforts,
    retired,
  } = findModel(provider, model, settings.config.provider.models) ?? unknownModel;
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

function tableRows(settings: Settings): readonly ModelRow[] {
  return Object.keys({ ...knownModels, ...settings.config.provider.models }).map((name) => {
    const slash = name.indexOf('/');
    return row(settings, name.slice(0, Math.max(0, slash)), name.slice(slash + 1), 'table');
  });
}

async function localRows(settings: Settings): Promise<readonly ModelRow[]> {
  const servers = await findLocalServers({
    env: settings.env,
    presets: builtInPresets,
    userProviders: settings.config.provider.custom,
  });
  return servers.flatMap(({ endpoint, models }) =>
    models.map((listed) => row(settings, endpoint.provider, listed.id, 'server', listed.contextWindow)),
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
  const listed = await askForModels(resolved.endpoint, settings.env);
  if (listed.ok) return listed.models.map((item) => row(settings, name, item.id, 'server', item.contextWindow));
  out.error(`agent: ${listed.message}; the list is what is known here.\n`);
  return known;
}

import builtIn from '../../../config/models.json' with { type: 'json' };
import type { TokenUsage } from '../core/event.js';
import type { ModelEntry, Price } from '../core/provider.js';
import { builtInPresets } from './catalog.js';

export type ModelTable = Readonly<Record<string, ModelEntry>>;

/** Facts about a model; null where a fact is not known. */
export interface ModelFacts {
  readonly contextWindow: number | null;
  readonly maxOutputTokens: number | null;
  readonly price: Price | null;
  /** USD of one web search that the provider makes. */
  readonly webSearchUsd: number | null;
  readonly efforts: readonly string[] | null;
  /** It accepts images. */
  readonly vision: boolean | null;
  readonly retired: boolean;
}

/** A source of the table's facts. `date` is the day on which that version was published. */
export interface ModelSource {
  readonly package: string;
  readonly version: string;
  readonly date?: string;
}

const { $sources, ...rows } = builtIn;

/** The models this program comes with knowledge of, by `provider/model`, and the packages they were taken from
 * (`config/update-models.mjs`). */
export const knownModels: ModelTable = rows;
export const modelSources: readonly ModelSource[] = $sources;

const nothing: ModelTable = {};
/** Earlier results, because every request asks. */
const foundIn = new WeakMap<ModelTable, Map<string, ModelFacts | null>>();

/** Looks up `model` of `provider`, in the user's `own` table first; null where neither table has it. Guesses nothing:
 * it tries the exact name, the name without a date or `-latest` at the end, and for gateways (`vendor/model`) the
 * vendor's own name. */
export function findModel(provider: string, model: string, own: ModelTable = nothing): ModelFacts | null {
  const found = foundIn.get(own) ?? new Map<string, ModelFacts | null>();
  foundIn.set(own, found);
  const key = `${provider}\0${model}`;
  const before = found.get(key);
  if (before !== undefined) return before;
  const names = namesOf(provider, model);
  const mine = pick(own, names);
  const known = pick(knownModels, names) ?? elsewhere(provider, model);
  const facts = mine === null && known === null ? null : factsOf({ ...known, ...mine });
  found.set(key, facts);
  return facts;
}

/** Returns the context window of a model: as the tables have it, or as its server has named it in this run. */
export function contextWindowOf(
  {
    config,
    servedWindows,
  }: {
    readonly config: { readonly provider: { readonly models: ModelTable } };
    readonly servedWindows?: ReadonlyMap<string, number>;
  },
  provider: string,
  model: string,
): number | null {
  const known = findModel(provider, model, config.provider.models)?.contextWindow ?? null;
  return known ?? servedWindows?.get(`${provider}/${model}`) ?? null;
}

/** Returns the row of another provider that holds for this one's model too (`table_rows`), at this one's prices. */
function elsewhere(provider: string, model: string): ModelEntry | null {
  const rows = Object.hasOwn(builtInPresets, provider) ? (builtInPresets[provider]?.table_rows ?? []) : [];
  const rule = rows.find(({ models }) => new RegExp(models).test(model));
  if (rule === undefined) return null;
  const [vendor = '', ...rest] = model.replace(new RegExp(rule.models), rule.row).split('/');
  const entry = pick(knownModels, namesOf(vendor, rest.join('/')));
  return entry === null ? null : withFactor(entry, rule.price_factor ?? 1);
}

function withFactor(entry: ModelEntry, factor: number): ModelEntry {
  const { long_prompt: long, ...others } = entry;
  if (factor === 1) return entry;
  return {
    ...others,
    ...scaledPrices(others, factor),
    ...(long === undefined ? {} : { long_prompt: { ...long, ...scaledPrices(long, factor) } }),
  };
}

/** Returns the prices per token in `fields`, times `factor`. */
function scaledPrices<T extends object>(fields: T, factor: number): Partial<T> {
  const prices = Object.entries(fields as Readonly<Record<string, unknown>>).flatMap(([name, value]) =>
    name.endsWith('_usd') && typeof value === 'number' ? [[name, Number((value * factor).toPrecision(12))]] : [],
  );
  return Object.fromEntries(prices) as Partial<T>;
}

function pick(table: ModelTable, names: readonly string[]): ModelEntry | null {
  const name = names.find((candidate) => Object.hasOwn(table, candidate));
  return name === undefined ? null : (table[name] ?? null);
}

/** Lists the names that an entry may have, best first. */
function namesOf(provider: string, model: string): readonly string[] {
  const id = model.replace(/:(?:free|beta|extended|nitro|floor|thinking)$/, '').replace(/^models\//, '');
  const variant = id !== model && model.endsWith(':free');
  const undated = id.replace(/(?:[-@]\d{4}-\d{2}-\d{2}|[-@]\d{8}|-latest)$/, '');
  const forms = [...new Set([id, undated])];
  const direct = [`${provider}/${model}`, model, ...forms.flatMap((form) => [`${provider}/${form}`, form])];
  return variant ? direct.slice(0, 2) : [...direct, ...forms.map(vendorName).filter((name) => name !== null)];
}

/** Returns the vendor's own name of a gateway's model: `anthropic/claude-sonnet-4-5` for
 * `anthropic/claude-sonnet-4.5`. */
function vendorName(model: string): string | null {
  const [vendor = '', ...rest] = model.split('/');
  const [name, preset] = Object.entries(builtInPresets).find(([, { gateway_name: own }]) => own === vendor) ?? [];
  if (name === undefined || rest.length === 0) return null;
  const id = rest.join('/');
  return `${name}/${preset?.gateway_dots === true ? id.replaceAll('.', '-') : id}`;
}

function factsOf(entry: ModelEntry): ModelFacts {
  return {
    contextWindow: entry.context_window ?? null,
    maxOutputTokens: entry.max_output_tokens ?? null,
    price: priceOf(entry),
    webSearchUsd: entry.web_search_usd ?? null,
    efforts: entry.efforts ?? null,
    vision: entry.vision ?? null,
    retired: entry.retired === true,
  };
}

function priceOf(entry: ModelEntry): Price | null {
  const {
    input_usd: input,
    output_usd: output,
    cache_read_usd: read,
    cache_write_usd: write,
    long_prompt: long,
  } = entry;
  if (input === undefined || output === undefined) return null;
  return {
    input,
    output,
    ...(read === undefined ? {} : { cacheRead: read }),
    ...(write === undefined ? {} : { cacheWrite: write }),
    ...(long === undefined
      ? {}
      : {
          long: {
            aboveTokens: long.above_tokens,
            input: long.input_usd,
            output: long.output_usd,
            ...(long.cache_read_usd === undefined ? {} : { cacheRead: long.cache_read_usd }),
            ...(long.cache_write_usd === undefined ? {} : { cacheWrite: long.cache_write_usd }),
          },
        }),
  };
}

/** Returns the cost of a request in USD; null where the price is not known. */
export function costUsd(usage: TokenUsage, price: Price | null): number | null {
  if (price === null) return null;
  const prompt = usage.input + usage.cacheRead + usage.cacheWrite;
  const rates = price.long !== undefined && prompt > price.long.aboveTokens ? price.long : price;
  const total =
    usage.input * rates.input +
    usage.cacheRead * (rates.cacheRead ?? rates.input) +
    usage.cacheWrite * (rates.cacheWrite ?? rates.input) +
    usage.output * rates.output;
  return total / 1_000_000;
}

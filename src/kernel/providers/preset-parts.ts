import type { JsonObject } from '../core/json.js';
import { profileRegion } from './clouds/aws-profile.js';
import type { Quirks } from './quirks.js';

/** A cloud whose credentials authorize requests where there is no key. */
export interface Cloud {
  readonly name: 'azure' | 'aws' | 'google';
  /** The scope of a token (Azure, Google), or the service in a signature (AWS). */
  readonly audience: string;
  /** Says how to get credentials, for a failure. */
  readonly hint: string;
}

/** A way of serving the models whose ids match `models`. */
interface Route {
  readonly models: string;
  /** The name of its wire. */
  readonly api: string;
  /** Replaces the path of the wire. */
  readonly path?: string;
  readonly quirks?: Quirks;
  /** Fields of the body. `{model}` is the model's id. */
  readonly extra_body?: Readonly<Record<string, string>>;
}

/** A part of an address: `{name}` in `base_url`, `base_path` and `models_path`. */
interface AddressPart {
  /** Variables that hold it, first one set wins. A setting of the same name goes before them. */
  readonly env?: readonly string[];
  /** Names the file of a cloud's own programs that may hold it. Variables go before it. */
  readonly file?: keyof typeof fileParts;
  /** The part that it depends on: `values` by the value of that one. */
  readonly of?: string;
  readonly values?: Readonly<Record<string, string>>;
  /** May hold other parts. Absent: it has to be given. */
  readonly default?: string;
}

/** Advice about a message of the server that matches `says`. */
export interface FaultHint {
  readonly says: string;
  readonly hint: string;
}

/** Fields of a preset for a provider whose address is made of parts, or that a cloud authorizes. */
export interface PresetParts {
  /** Appended to an address that has no path of its own. */
  readonly base_path?: string;
  readonly parts?: Readonly<Record<string, AddressPart>>;
  /** The value of the part `region`. */
  readonly region?: string;
  /** The value of the part `project`. */
  readonly project?: string;
  /** Advice where a part of the address is missing. */
  readonly address_hint?: string;
  readonly cloud?: Cloud;
  /** The header that carries a key, where it is not that of the wire. */
  readonly key_header?: string;
  /** The first that matches a model's id decides its wire. Absent: all models have the one of `api`. */
  readonly routes?: readonly Route[];
  /** First match wins. */
  readonly fault_hints?: readonly FaultHint[];
  /** Variables that name the default model. */
  readonly default_model_env?: readonly string[];
  /** Advice where no model is chosen. */
  readonly model_hint?: string;
  /** Rows of the model table that hold for models of other names, first match wins. */
  readonly table_rows?: readonly { readonly models: string; readonly row: string; readonly price_factor?: number }[];
}

type Env = Readonly<Record<string, string | undefined>>;

const fileParts = { 'aws-profile': profileRegion } as const;

/** Returns the value of the first of these variables that is set. */
export function firstSet(names: readonly string[], env: Env): string | undefined {
  return names.map((variable) => env[variable]?.trim() ?? '').find((value) => value !== '');
}

type Filled = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly missing: string };

/** Puts the parts of an address into `text`. `missing`: the first one that is not given. */
export function fillParts(text: string, preset: PresetParts, env: Env): Filled {
  let missing: string | null = null;
  const filled = text.replaceAll(/\{(\w+)\}/g, (whole, part: string) => {
    if (preset.parts?.[part] === undefined) return whole;
    const value = partValue(part, preset, env);
    if (value === null) missing ??= part;
    return value ?? '';
  });
  return missing === null ? { ok: true, text: filled } : { ok: false, missing };
}

/** A part may not change what surrounds it. */
const partForm = /^[A-Za-z0-9][\w.:-]*$/;

/** Returns the value of a part; null where it is not given, or is none that an address may hold. */
function partValue(name: string, preset: PresetParts, env: Env): string | null {
  const part = preset.parts?.[name];
  if (part === undefined) return null;
  const inFile = (): string | undefined => (part.file === undefined ? undefined : fileParts[part.file](env));
  const given = settingOf(name, preset) ?? firstSet(part.env ?? [], env) ?? inFile();
  if (given !== undefined) return partForm.test(given) ? given : null;
  const usual = usualText(part, preset, env);
  if (usual === undefined) return null;
  const filled = fillParts(usual, preset, env);
  return filled.ok ? filled.text : null;
}

function usualText({ of, values, default: otherwise }: AddressPart, preset: PresetParts, env: Env): string | undefined {
  const key = of === undefined ? null : partValue(of, preset, env);
  return (key === null ? undefined : values?.[key]) ?? otherwise;
}

function settingOf(name: string, { region, project }: PresetParts): string | undefined {
  if (name === 'region') return region;
  return name === 'project' ? project : undefined;
}

/** Returns an address with `path` where it has no path, or only the beginning of `basePath`, of which `path` is the
 * filled form. */
export function withBasePath(url: string, basePath: string, path: string): string {
  const changed = new URL(url);
  const pathname = changed.pathname.replace(/\/*$/, '/');
  if (basePath === '' || !`${basePath}/`.startsWith(pathname)) return url;
  changed.pathname = path;
  return changed.href;
}

/** Returns the path of requests of `model` where it names the model or replaces that of the wire. */
export function requestPath(path: string, wirePath: string, model: string): { readonly path?: string } {
  const name = encodeURIComponent(model).replaceAll('%40', '@');
  return path === wirePath && !path.includes('{model}') ? {} : { path: path.replaceAll('{model}', name) };
}

/** Returns the fields that a route adds to the bodies of `model`. */
export function routeBody(route: Route | undefined, model: string): JsonObject | undefined {
  if (route?.extra_body === undefined) return undefined;
  return Object.fromEntries(
    Object.entries(route.extra_body).map(([name, text]) => [name, text.replaceAll('{model}', model)]),
  );
}

/** Returns the route of `model`; undefined where it has none of its own. */
export function routeOf({ routes = [] }: PresetParts, model: string): Route | undefined {
  return routes.find(({ models }) => new RegExp(models).test(model));
}

/** Returns the address or path at which models are listed. An address counts only at the vendor's own host. */
export function listingPath(path: string, preset: PresetParts, isOwnHost: boolean, env: Env): string {
  const filled = fillParts(path, preset, env);
  if (!filled.ok || !URL.canParse(filled.text)) return path;
  const { pathname, search } = new URL(filled.text);
  return isOwnHost ? filled.text : pathname + search;
}

const regionInHost = /(?:^|\.)([a-z]{2}(?:-[a-z]+)+-\d)\./;

/** Returns the region of an address, because a session keeps its address; else the one that is configured. */
export function regionOf(url: string, preset: PresetParts, env: Env): string | null {
  return regionInHost.exec(new URL(url).host)?.[1] ?? partValue('region', preset, env);
}

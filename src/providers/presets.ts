import builtIn from '../../config/providers.json' with { type: 'json' };
import type { JsonObject } from '../core/json.js';
import type { Quirks } from './quirks.js';
import { defaultWire } from './wires/known-wires.js';

/** One entry of `config/providers.json`, or of `providers` in the user's configuration. */
export interface Preset {
  readonly label?: string;
  /** The name of its wire, or `offline`. */
  readonly api: string;
  /** The wire of other hosts than that of `base_url`. */
  readonly other_host_api?: string;
  readonly other_host_quirks?: Quirks;
  readonly base_url: string;
  /** Variables that hold a base URL, first one set wins. Default: `<NAME>_BASE_URL`. */
  readonly base_url_env?: readonly string[];
  /** Port of a base URL given without one (`OLLAMA_HOST=myhost`). */
  readonly default_port?: number;
  /** Variables that hold the key, first one set wins. */
  readonly key_env: string | readonly string[];
  /** False: requests without a key are fine. Default true. */
  readonly key_required?: boolean;
  /** True: a server on this machine, which is found by asking its port. */
  readonly local?: boolean;
  /** Null: the first model the server lists. */
  readonly default_model: string | null;
  /** Appended to the base URL for the list of models. Default `/models`. */
  readonly models_path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly quirks?: Quirks;
  /** True: hints name this one where no model is connected. */
  readonly suggested?: boolean;
  /** What gateways put before the ids of this vendor's models: `x-ai` in `x-ai/grok-5`. */
  readonly gateway_name?: string;
  /** True: gateways write a dot where this vendor writes a dash (`claude-sonnet-4.5`). */
  readonly gateway_dots?: boolean;
  /** What the sources of the model table call this provider; read by `config/update-models.mjs`. */
  readonly table_sources?: Readonly<Record<string, string>>;
  /** Merged into every request body (`provider` routing and the like). */
  readonly extra_body?: JsonObject;
}

export type Presets = Readonly<Record<string, Preset>>;

/** The presets of the program, in the order in which a provider is chosen where nothing is configured. */
export const builtInPresets: Presets = builtIn as Presets;

/** Merges the user's entries over the presets, field by field; new names come last. */
export function mergePresets(presets: Presets, user: Readonly<Record<string, Partial<Preset>>>): Presets {
  const merged: Record<string, Preset> = { ...presets };
  for (const [name, entry] of Object.entries(user)) {
    const base: Preset = merged[name] ?? { api: defaultWire, base_url: '', key_env: [], default_model: null };
    merged[name] = {
      ...base,
      ...entry,
      quirks: { ...base.quirks, ...entry.quirks },
      headers: { ...base.headers, ...entry.headers },
    };
  }
  return merged;
}

/** The provider that hints name where no model is connected, and its key. Throws where no preset is `suggested`. */
export function suggestedProvider(presets: Presets = builtInPresets): {
  readonly name: string;
  readonly key: string;
  readonly model: string;
} {
  const [name, preset] = Object.entries(presets).find(([, { suggested }]) => suggested === true) ?? [];
  if (name === undefined || preset === undefined) throw new Error('no preset is suggested');
  return { name, key: keyNames(preset)[0] ?? '', model: preset.default_model ?? '<model>' };
}

export function keyNames(preset: Preset): readonly string[] {
  return typeof preset.key_env === 'string' ? [preset.key_env] : preset.key_env;
}

export function baseUrlNames(name: string, preset: Preset): readonly string[] {
  return preset.base_url_env ?? [`${name.toUpperCase().replaceAll(/[^A-Z0-9]/g, '_')}_BASE_URL`];
}

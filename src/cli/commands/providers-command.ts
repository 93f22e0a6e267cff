import { builtInPresets, keyNames, mergePresets } from '../../providers/catalog-presets.js';
import { resolveProvider } from '../../providers/catalog.js';
import { exit } from '../cli-error.js';
import { columns, printListing } from '../print.js';
import { providerChoice } from '../open/model-opening.js';
import type { RootOptions } from '../options.js';
import { setUp } from '../setup.js';

/** The presets and the user's own providers: where each is, which variable its key comes from, and whether it is set.
 * Never a key. */
export async function listProviders(options: RootOptions & { readonly json?: boolean }): Promise<number> {
  const setup = await setUp(options);
  const presets = mergePresets(builtInPresets, setup.config.provider.custom);
  const rows = Object.entries(presets).map(([name, preset]) => {
    const resolved = resolveProvider(providerChoice(setup, { provider: name, model: 'any' }));
    const endpoint = resolved.ok ? resolved.endpoint : null;
    const variables = keyNames(preset);
    return {
      name,
      label: preset.label ?? name,
      api: endpoint?.api ?? preset.api,
      base_url: endpoint?.baseUrl ?? preset.base_url,
      key_env: variables,
      key_set: variables.some((variable) => (setup.env[variable] ?? '').trim() !== ''),
      key_required: preset.key_required !== false,
      default_model: preset.default_model,
    };
  });
  printListing(options.json, rows, () =>
    columns(
      rows.map((row) => [
        row.name,
        row.api,
        keyState(row),
        row.base_url === '' ? '-' : row.base_url,
        row.default_model ?? '-',
      ]),
    ),
  );
  return exit.done;
}

function keyState(row: {
  readonly key_env: readonly string[];
  readonly key_set: boolean;
  readonly key_required: boolean;
}): string {
  if (!row.key_set && (row.key_env.length === 0 || !row.key_required)) return 'no key needed';
  return row.key_set ? `${row.key_env[0] ?? ''} is set` : `${row.key_env.join(' or ')} is not set`;
}

import { resolveProvider } from '../../providers/catalog.js';
import type { CheckReport } from '../../providers/endpoint-check.js';
import { builtInPresets, keyNames, mergePresets } from '../../providers/presets.js';
import { type CommandLine, exit, type Verb } from '../command.js';
import { columns, printListing } from '../line-output.js';

interface ListProvidersOptions {
  readonly json?: boolean;
  readonly model?: string;
}

export const listProviders: Verb = {
  line: {
    example: 'agent providers --json',
    options: (command) => command.option('--json', 'one JSON array'),
    run: (line, _args, options: ListProvidersOptions) => list(line, options),
  },
};

export const checkProvider: Verb = {
  line: {
    example: 'agent providers check openrouter',
    options: (command) => command.option('--json', 'one JSON array'),
    run: (line, [name = ''], options: ListProvidersOptions) => check(line, name, options),
  },
};

/** Lists the presets and the user's own providers: the address of each, the variable of its key, and whether that is
 * set. Never shows a key. */
async function list({ out, settings, models }: CommandLine, { json }: ListProvidersOptions): Promise<number> {
  const { config, env } = await settings();
  const presets = Object.entries(mergePresets(builtInPresets, config.provider.custom));
  const rowOf = async ([name, preset]: (typeof presets)[number]) => {
    const resolved = resolveProvider(await models.choice(name, 'any'));
    const endpoint = resolved.ok ? resolved.endpoint : null;
    const variables = keyNames(preset);
    return {
      name,
      label: preset.label ?? name,
      api: endpoint?.api ?? preset.api,
      base_url: endpoint?.baseUrl ?? preset.base_url,
      key_env: variables,
      key_set: variables.some((variable) => (env[variable] ?? '').trim() !== ''),
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

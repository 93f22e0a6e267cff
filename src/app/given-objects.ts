import { resolve } from 'node:path';
import { CliError, exit } from '../kernel/console/command.js';
import type { RootOptions } from '../kernel/console/options.js';
import { parseConfigText } from '../kernel/config/settings-file.js';
import { resolveKey } from '../kernel/config/settings-schema.js';
import { isRecord } from '../kernel/core/json.js';
import { readBounded } from '../kernel/disk/bounded-file.js';

const maxBytes = 1024 * 1024;

/** Returns the servers of `--mcp-config`: files or JSON texts, with or without `mcpServers`; later ones count. Throws a
 * `CliError` (2) for what is neither. */
export async function givenServers(values: readonly string[], cwd: string): Promise<Readonly<Record<string, unknown>>> {
  const objects = await Promise.all(
    values.map(async (value) => await givenObject('--mcp-config', value, cwd, serverExample)),
  );
  const servers = objects.map(({ mcpServers, ...others }) => (isRecord(mcpServers) ? mcpServers : others));
  return Object.fromEntries(servers.flatMap((entries) => Object.entries(entries)));
}

/** Returns the sub-agents of `--agents`. Throws a `CliError` (2) for one without a description or a prompt. */
export async function givenAgents(value: string, cwd: string): Promise<Readonly<Record<string, unknown>>> {
  const agents = await givenObject('--agents', value, cwd, agentExample);
  for (const [name, agent] of Object.entries(agents))
    for (const key of ['description', 'prompt']) {
      const text = isRecord(agent) ? agent[key] : undefined;
      if (typeof text !== 'string' || text.trim() === '')
        throw new CliError(
          exit.usage,
          `--agents: ${JSON.stringify(name)} has no ${key}`,
          `For example: ${agentExample}`,
        );
    }
  return agents;
}

const agentExample = '{"reviewer": {"description": "Reviews code.", "prompt": "You review code.", "tools": ["Read"]}}';
const serverExample = '{"mcpServers": {"files": {"command": "server"}}}';

/** Turns the settings of `--settings` into options: keys of ours, and the permissions and the
 * model of Claude Code's settings. Returns sentences about the keys that have no effect. Throws a `CliError` (2) for
 * what is no object. */
export async function withGivenSettings(
  options: RootOptions,
  cwd: string,
): Promise<{ readonly options: RootOptions; readonly unused: readonly string[] }> {
  if (options.settings === undefined) return { options, unused: [] };
  const given = await givenObject('--settings', options.settings, cwd, '{"approval": "mutating"}');
  const { permissions, ...others } = given;
  const isKnown = (key: string): boolean => resolveKey(key) !== null && !claudeKeys.includes(key);
  const known = Object.entries(others).filter(([key]) => isKnown(key));
  const unknown = Object.keys(others).filter((key) => !isKnown(key) && !key.startsWith('$'));
  const rules = isRecord(permissions) ? permissions : {};
  const allowed = [...textsIn(rules['allow']), ...(options.allowedTools ?? [])];
  const missing = Object.keys(rules).filter((key) => !permissionKeys.includes(key));
  return {
    options: {
      ...options,
      // Later ones win: an option of the command line wins over this file.
      set: [...known.map(([key, value]) => `${key}=${settingText(value)}`), ...options.set],
      allowedTools: allowed,
      disallowedTools: [...textsIn(rules['deny']), ...(options.disallowedTools ?? [])],
      askTools: [...textsIn(rules['ask']), ...(options.askTools ?? [])],
      addDir: [...textsIn(rules['additionalDirectories']), ...(options.addDir ?? [])],
      ...(await modeOptions(rules['defaultMode'], options, allowed)),
    },
    unused: [...unknown, ...missing.map((key) => `permissions.${key}`)],
  };
}

/** Keys of Claude Code's settings that have another meaning here. */
const claudeKeys: readonly string[] = ['tools', 'agents', 'memory'];
const permissionKeys: readonly string[] = ['allow', 'ask', 'deny', 'additionalDirectories', 'defaultMode'];

/** Returns the options of a mode of Claude Code, unless the command line gives another. */
async function modeOptions(
  mode: unknown,
  { approval, plan }: RootOptions,
  allowedBefore: readonly string[],
): Promise<Partial<RootOptions>> {
  if (typeof mode !== 'string' || approval !== undefined || plan === true) return {};
  const { foreignFlags } = await import('../kernel/console/foreign-command-line.js');
  const modes = foreignFlags.find(({ flags }) => flags.startsWith('--permission-mode'))?.gives ?? {};
  const words = Object.entries(modes).find(([name]) => name === mode)?.[1];
  if (!Array.isArray(words))
    throw new CliError(
      exit.usage,
      `--settings: permissions.defaultMode \`${mode}\` is not a mode that Claude Code knows`,
      `Known: ${Object.keys(modes).join(', ')}.`,
    );
  const valueOf = (option: string): string | undefined =>
    words.includes(option) ? String(words[words.indexOf(option) + 1]) : undefined;
  const allowed = valueOf('--allowed-tools');
  return {
    ...(words.includes('--plan') ? { plan: true } : { approval: valueOf('--approval') ?? 'mutating' }),
    ...(allowed === undefined ? {} : { allowedTools: [...allowedBefore, allowed] }),
  };
}

function settingText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function textsIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((text) => typeof text === 'string') : [];
}

/** Reads an object that is written out, or that a file holds. */
export async function givenObject(
  option: string,
  value: string,
  cwd: string,
  example: string,
): Promise<Readonly<Record<string, unknown>>> {
  const isText = value.trimStart().startsWith('{');
  const path = resolve(cwd, value);
  const found = isText ? null : readBounded(path, { maxBytes, longer: 'refuse', links: 'follow' });
  if (found !== null && found.kind !== 'read')
    throw new CliError(
      exit.usage,
      `${option}: ${path} ${found.kind === 'missing' ? 'does not exist' : `is left out: ${found.reason}`}`,
      'Give a JSON file, or the object itself.',
    );
  const text = found === null ? value : found.bytes.toString('utf8').replace(/^\uFEFF/, '');
  const parsed = await parseConfigText(text);
  if (parsed.kind === 'object') return parsed.value;
  const place = isText ? 'the text' : path;
  throw new CliError(
    exit.usage,
    `${option}: ${place} is not a JSON object: ${parsed.reason}`,
    `For example: ${example}`,
  );
}

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { ToolsetHost } from '../../src/kernel/console/feature.js';
import { createBridge } from '../../src/features/mcp/bridge.js';
import type { RememberedTools } from '../../src/features/mcp/remembered-tools.js';
import type { Servers } from '../../src/features/mcp/servers.js';
import { loadConfig } from '../../src/kernel/config/load.js';
import { isRecord } from '../../src/kernel/core/json.js';
import type { Tool, Toolset } from '../../src/kernel/core/tool.js';
import type { Background } from '../../src/kernel/tools/bash.js';
import { builtinTools, inToolset } from '../../src/kernel/tools/builtin.js';
import { checkedText } from '../../src/kernel/tools/registry.js';
import { processes, toolOptions, tree } from '../kernel/tools/workbench.js';
import { featureToolsets, toolsets } from '../../src/app/features.js';
import type { Jobs } from '../../src/features/background-tasks/background.js';
import { type OpenedJobs, openedJobs } from '../../src/features/background-tasks/job-parts.js';
import { runningServers } from '../../src/features/mcp/mcp-parts.js';
import type { OpenedServers } from '../../src/features/mcp/start-servers.js';
import { Parts } from '../../src/kernel/console/parts.js';

const page = new URL('../../docs/tools.md', import.meta.url);
const schemas = new URL('../../config/tool-schemas.json', import.meta.url);
/** The tools that reach servers are made without using them. */
const none = {} as unknown as Servers & RememberedTools;
const marker = '<!-- Written by npm run tools:page from here on. -->';

/** What a set needs to be offered here: a service for searches that is not asked. */
const env = { PATH: process.env.PATH, BRAVE_API_KEY: 'not-a-key' };

async function toolsOf(toolset: Toolset): Promise<readonly Tool[]> {
  if (toolset.on && toolset.lazy !== true)
    return builtinTools(toolOptions()).filter((tool) => tool.toolset === toolset);
  const home = tree();
  const loaded = await loadConfig({ env: { ...env, AGENT_HOME: join(home, 'a') }, cwd: home, home });
  // Sets are made without using any of the rest.
  const host = {
    settings: {
      config: loaded.config,
      cwd: home,
      env,
      home,
      loaded,
      testMode: false,
      log: () => {},
      guard: {},
      keys: { all: () => ({}) },
      projects: { sources: () => Promise.resolve([]) },
    },
    processes,
    confine: undefined,
    approval: {},
    ports: () => Promise.reject(new Error('no record here')),
    notify: () => {},
    parts: new Parts()
      .add(openedJobs, { get: () => Promise.resolve({} as Jobs) } as OpenedJobs)
      .add(runningServers, () => {
        const { fixed } = createBridge({ servers: none, remembered: none, toolset });
        return Promise.resolve({ tools: fixed } as unknown as OpenedServers);
      }),
    model: { unpriced: () => null, canSearch: () => false },
  } as unknown as ToolsetHost;
  const set = featureToolsets.find(({ name }) => name === toolset.name);
  return inToolset(toolset, (await set?.load(host, new Map())) ?? []);
}

function setSection({ name, on, inRepl, guidance }: Toolset, tools: readonly string[]): string {
  const enabled = `\`--tools +${name}\`, \`/tools +${name}\` or \`"toolsets": ["${name}"]\``;
  const disabled = `unless \`tools.${name}\` is false or \`--tools -${name}\` is given`;
  const how = on
    ? `On, ${disabled}.`
    : inRepl
      ? `On in the REPL, ${disabled}; elsewhere off, until ${enabled}.`
      : `Off, until ${enabled}.`;
  const says = guidance === undefined ? '' : ` The system prompt then says: "${guidance}"`;
  return [`## \`${name}\``, `${how}${says}`, ...tools].join('\n\n');
}

function toolSection(tool: Tool): string {
  const { properties, required } = tool.input_schema;
  const rows = Object.entries(isRecord(properties) ? properties : {}).map(([name, node]) => {
    const needed = Array.isArray(required) && required.includes(name) ? 'yes' : '';
    return `| \`${name}\` | ${cell(typeOf(node))} | ${needed} | ${cell(wordsOf(node))} |`;
  });
  return [
    `### \`${tool.name}\``,
    tool.description,
    factsOf(tool).join(' · '),
    ...(tool.guidance ? [`In the system prompt: "${tool.guidance.line}"`] : []),
    ...(rows.length === 0 ? [] : [['| argument | type | needed | |', '| --- | --- | --- | --- |', ...rows].join('\n')]),
  ].join('\n\n');
}

function factsOf({ effect, limits = {}, otherNames = [], repeatable }: Tool): readonly string[] {
  const { timeout_ms: timeoutMs, rate_per_min: rate, max_output_bytes: maxBytes } = limits;
  return [
    `effect: ${effect}`,
    ...(timeoutMs === undefined ? [] : [`at most ${timeoutMs / 1000} s`]),
    ...(rate === undefined ? [] : [`${rate} a minute`]),
    ...(maxBytes === undefined ? [] : [`output up to ${maxBytes.toLocaleString('en-US')} bytes`]),
    ...(repeatable === true ? ['`replay --verify` runs it again'] : []),
    ...(otherNames.length === 0 ? [] : [`also called ${otherNames.map((name) => `\`${name}\``).join(', ')}`]),
  ];
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|');
}

function typeOf(node: unknown): string {
  if (!isRecord(node)) return '';
  if (Array.isArray(node['enum'])) return node['enum'].map((value) => `\`${JSON.stringify(value)}\``).join(' or ');
  if (Array.isArray(node['anyOf'])) return node['anyOf'].map(typeOf).join(' or ');
  if (Array.isArray(node['type'])) return node['type'].join(' or ');
  const { type, items } = node;
  return type === 'array' ? `list of ${typeOf(items)}` : typeof type === 'string' ? type : 'any';
}

function wordsOf(node: unknown): string {
  if (!isRecord(node)) return '';
  const range = (least: unknown, most: unknown, unit: string): readonly string[] => {
    if (typeof least !== 'number') return typeof most === 'number' ? [`at most ${most}${unit}`] : [];
    return typeof most === 'number' ? [`${least} to ${most}${unit}`] : [`at least ${least}${unit}`];
  };
  return [
    ...(typeof node['description'] === 'string' ? [node['description']] : []),
    ...range(node['minimum'], node['maximum'], ''),
    ...range(node['minLength'], node['maxLength'], ' characters'),
    ...range(node['minItems'], node['maxItems'], ' items'),
  ].join('; ');
}

/** The section of a tool that cannot be offered on this machine stays as it is. */
function keptSection(name: string, text: string): string {
  return new RegExp(`^### \`${name}\`\\n[^]*?(?=\\n\\n##|\\n*$(?![^]))`, 'm').exec(text)?.[0] ?? '';
}

test('docs/tools.md lists every tool as it is; npm run tools:page writes it', async () => {
  const [intro = '', rest = ''] = readFileSync(page, 'utf8').split(`${marker}\n`);
  const sections = await Promise.all(
    toolsets.map(async (toolset) => {
      const tools = await toolsOf(toolset);
      const names = featureToolsets.find(({ name }) => name === toolset.name)?.tools ?? tools.map(({ name }) => name);
      const made = new Map(tools.map((tool) => [tool.name, toolSection(tool)]));
      return setSection(
        toolset,
        names.map((name) => made.get(name) ?? keptSection(name, rest)),
      );
    }),
  );
  await expect(`${intro}${marker}\n\n${sections.join('\n\n')}\n`).toMatchFileSnapshot(page.pathname);
});

function schemaRow(tool: string, schema: string): string {
  return `  { "tool": "${tool}", "schema": ${schema} }`;
}

function isRowOf(tool: string, row: string): boolean {
  return row.startsWith(schemaRow(tool, '').slice(0, -2));
}

test('config/tool-schemas.json holds the schema of every tool; npm run tools:page writes it', async () => {
  const sets = await Promise.all(toolsets.map(toolsOf));
  const beside = builtinTools(toolOptions({ background: {} as Background })).filter(({ name }) => name === 'bash');
  const made = [...sets.flat(), ...beside].map(({ name, input_schema }) => schemaRow(name, checkedText(input_schema)));
  // That of a tool that cannot be offered on this machine stays as it is.
  const kept = readFileSync(schemas, 'utf8').split(/,?\n/);
  const rows = featureToolsets
    .flatMap(({ tools }) => tools ?? [])
    .flatMap((name) => (made.some((row) => isRowOf(name, row)) ? [] : kept.filter((row) => isRowOf(name, row))));
  const all = [...made, ...rows].toSorted();
  await expect(`[\n${all.join(',\n')}\n]\n`).toMatchFileSnapshot(schemas.pathname);
});

test('what a set adds to a request stays small', async () => {
  const most: Readonly<Record<string, number>> = {
    fs: 2100,
    web: 1500,
    tasks: 1500,
    memory: 720,
    files: 600,
    mcp: 900,
    ask: 1000,
    agents: 1300,
    custom: 0,
  };
  const sizes = await Promise.all(
    toolsets.map(async (toolset) => {
      const tools = await toolsOf(toolset);
      const catalogue = tools.map(({ name, description, input_schema }) => ({ name, description, input_schema }));
      return { name: toolset.name, bytes: tools.length === 0 ? 0 : Buffer.byteLength(JSON.stringify(catalogue)) };
    }),
  );
  expect(sizes.filter(({ name, bytes }) => bytes > (most[name] ?? 450))).toEqual([]);
});

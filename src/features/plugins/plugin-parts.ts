import { filesIn } from '../../kernel/config/found-files.js';
import type { Kind } from '../../kernel/config/project.js';
import { hookEvents } from '../../kernel/core/hooks.js';
import { isRecord } from '../../kernel/core/json.js';
import { readBoundedText } from '../../kernel/disk/bounded-file.js';
import { counted } from '../../kernel/tools/define-tool.js';
import type { Plugin } from './read-plugin.js';

/** The number of parts of each kind in a plugin. Source: contracts, "Compatibility". */
export interface PartCounts {
  readonly skills: number;
  readonly commands: number;
  readonly agents: number;
  readonly hooks: number;
  readonly mcp: number;
  readonly output_styles: number;
}

/** The name of one part of each kind. */
const partNames: Readonly<Record<keyof PartCounts, string>> = {
  skills: 'skill',
  commands: 'command',
  agents: 'agent',
  hooks: 'hook',
  mcp: 'MCP server',
  output_styles: 'output style',
};

/** Says how many parts there are of these kinds; empty if there are none. */
export function partsText(counts: Partial<PartCounts>): string {
  const kinds = Object.entries(partNames) as readonly (readonly [keyof PartCounts, string])[];
  return kinds.flatMap(([kind, name]) => (counts[kind] ? [counted(counts[kind], name)] : [])).join(', ');
}

export function countParts(plugin: Plugin): PartCounts {
  return {
    skills: filesOf(plugin, 'skills').length,
    commands: filesOf(plugin, 'commands').length,
    agents: filesOf(plugin, 'agents').length,
    hooks: hookLines(plugin).length,
    mcp: plugin.servers.flatMap(({ value }) => Object.keys(value)).length,
    output_styles: filesOf(plugin, 'output-styles').length,
  };
}

/** Lists the files of one kind by path: a SKILL.md for each skill. */
function filesOf({ folders, root, name }: Plugin, kind: Kind): readonly string[] {
  const found = folders[kind].flatMap((folder) =>
    filesIn({ folder, root, origin: `plugin:${name}`, prefix: name }, ({ path, isFolder }) => {
      if (kind === 'skills') return isFolder && readHead(`${path}/SKILL.md`) !== null ? `${path}/SKILL.md` : null;
      return !isFolder && path.endsWith('.md') && !/\/(?:SKILL|README)\.md$/i.test(path) ? path : null;
    }),
  );
  return [...new Set(found.map(({ path }) => path))];
}

const maxHead = 64 * 1024;

function readHead(path: string): string | null {
  return readBoundedText(path, { maxBytes: maxHead, longer: 'start', links: 'follow' });
}

/** Returns a line for each program that a hook or server of the plugin starts, and for each command that a text runs
 * when it is used; then the counts of the rest. */
export function describeParts(plugin: Plugin): readonly string[] {
  const brought = partsText({ ...countParts(plugin), hooks: 0, mcp: 0 });
  const texts = [...filesOf(plugin, 'commands'), ...filesOf(plugin, 'skills')];
  return [
    ...hookLines(plugin),
    ...serverLines(plugin),
    ...texts.flatMap((path) =>
      commandsIn(readHead(path) ?? '').map((line) => `${nameBelow(plugin, path)} runs: ${line}`),
    ),
    ...(brought === '' ? [] : [brought]),
    ...(plugin.unused.length === 0 ? [] : [`not used here: ${plugin.unused.join(', ')}`]),
  ];
}

function nameBelow({ root }: Plugin, path: string): string {
  return path.slice(root.length + 1);
}

function hookLines({ hooks }: Plugin): readonly string[] {
  return hooks.flatMap(({ value }) =>
    Object.entries(isRecord(value['hooks']) ? value['hooks'] : {}).flatMap(([event, groups]) =>
      (Array.isArray(groups) ? groups : []).flatMap((group: unknown) => {
        const entries: unknown = isRecord(group) ? group['hooks'] : null;
        return (Array.isArray(entries) ? entries : []).map((entry: unknown) => hookLine(event, entry));
      }),
    ),
  );
}

const hookTypes: readonly unknown[] = ['command', 'prompt', 'agent'];

function hookLine(event: string, entry: unknown): string {
  const isKnown = hookEvents.some((known) => known === event);
  const runs = isKnown && isRecord(entry) && hookTypes.includes(entry['type']) ? 'runs' : 'is not used here';
  return `hook ${event} ${runs}: ${workOf(entry)}`;
}

function workOf(entry: unknown): string {
  const { command, args, prompt, url } = isRecord(entry) ? entry : {};
  const words = [command ?? prompt ?? url, args].flat().filter((word) => typeof word === 'string');
  return words.length === 0 ? JSON.stringify(entry) : words.join(' ');
}

function serverLines({ servers }: Plugin): readonly string[] {
  return servers.flatMap(({ value }) =>
    Object.entries(value).map(([name, entry]) => {
      const { url } = isRecord(entry) ? entry : {};
      return typeof url === 'string' ? `server ${name} connects to ${url}` : `server ${name} starts: ${workOf(entry)}`;
    }),
  );
}

/** The commands that a text runs when it is expanded: `` !`command` `` and blocks that begin with ```` ```! ````. */
function commandsIn(text: string): readonly string[] {
  const found = text.matchAll(/(?<=^|\s)!`([^`\n]+)`|^```!\s*\n([^]*?)^```/gm);
  return Array.from(found, ([, line, block = '']) => line ?? block.trim());
}

import { recordIn, type SettingsFields, textIn } from '../../kernel/config/foreign-settings.js';
import { readFrontMatter } from '../../kernel/config/front-matter.js';
import { readWorkFields } from '../../kernel/console/work-fields.js';
import type { EffortLevel } from '../../kernel/core/model-names.js';
import { isServerPattern } from '../../kernel/core/tool-patterns.js';
import { claudeNames } from '../../kernel/tools/foreign-tool-names.js';

/** An agent of another program. */
export interface ForeignAgent {
  readonly name: string;
  readonly description: string | null;
  readonly prompt: string;
  /** Names of Claude Code; null: all tools. */
  readonly tools: readonly string[] | null;
  readonly withoutTools: readonly string[];
  readonly model: string | null;
  readonly effort: EffortLevel | null;
  readonly maxTurns: number | null;
  readonly onlyReads: boolean;
}

/** The reason why an agent is not imported. */
export interface RefusedAgent {
  readonly refused: string;
}

type Read = ForeignAgent | RefusedAgent;

/** Returns the file of an agent. */
export function agentFile(agent: ForeignAgent): string {
  const { name, description, prompt, tools, withoutTools, model, effort, maxTurns, onlyReads } = agent;
  const fields: readonly (readonly [string, string | null])[] = [
    ['name', JSON.stringify(name)],
    ['description', description === null ? null : JSON.stringify(description)],
    ['tools', tools === null ? null : tools.join(', ')],
    ['disallowedTools', withoutTools.length === 0 ? null : withoutTools.join(', ')],
    ['model', model],
    ['effort', effort],
    ['maxTurns', maxTurns === null ? null : String(maxTurns)],
    ['permissionMode', onlyReads ? 'plan' : null],
  ];
  const lines = fields.flatMap(([key, value]) => (value === null ? [] : [`${key}: ${value}`]));
  return `---\n${lines.join('\n')}\n---\n\n${prompt.trim()}\n`;
}

/** Returns the names of Claude Code for a tool of another program: `server/*` is one of VS Code. */
function namesOf(name: string): readonly string[] {
  const known = claudeNames(name);
  if (known !== null) return known;
  if (isServerPattern(name)) return [name];
  // `server_*` of opencode, `mcp_server_tool` of Gemini CLI: the name alone does not say where that of the server ends.
  const parts = name.replace(/^mcp_/, '').split('_');
  const splits = parts.slice(1).map((_part, at) => [parts.slice(0, at + 1), parts.slice(at + 1)]);
  if (splits.length > 0) return splits.map(([one = [], other = []]) => `mcp__${one.join('_')}__${other.join('_')}`);
  return name.includes('*') ? [`mcp__${name}`] : [name];
}

function allNames(names: readonly string[]): readonly string[] {
  return [...new Set(names.flatMap(namesOf))];
}

function listIn(text: string | undefined): readonly string[] | null {
  if (text === undefined || text.trim() === '') return null;
  const names = text.split(/[\s,]+/).map((name) => name.replaceAll(/^["']|["']$/g, ''));
  return names.includes('*') ? null : names.filter((name) => name !== '');
}

/** Returns the effort of an agent, in the field of its program or behind its model. */
function effortIn(fields: SettingsFields): EffortLevel | null {
  const texts = Object.entries(fields).flatMap(([key, value]) => (typeof value === 'string' ? [[key, value]] : []));
  return readWorkFields(new Map(texts.map(([key = '', value = '']) => [key, value] as const))).effort;
}

function modelIn(value: unknown): string | null {
  const [, model] = /^(?:[\w.-]+\/)?([\w.:-]+)(?:#\w+)?$/.exec(textIn(value)?.trim() ?? '') ?? [];
  return model === undefined || model === 'inherit' ? null : model;
}

function countIn(value: unknown): number | null {
  const count = Number(value);
  return Number.isInteger(count) && count > 0 ? count : null;
}

/** Reads an agent in a Markdown file of Gemini CLI, Qwen Code, Cursor or VS Code. */
export function readMarkdownAgent(text: string, fileName: string): Read {
  const { fields, body } = readFrontMatter(text);
  if (fields.get('kind') === 'remote') return { refused: 'it runs on another machine' };
  if (body.trim() === '') return { refused: 'it has no prompt' };
  const tools = listIn(fields.get('tools'));
  return {
    name: textIn(fields.get('name')) ?? fileName,
    description: textIn(fields.get('description')),
    prompt: body,
    tools: tools === null ? null : allNames(tools),
    withoutTools: allNames(listIn(fields.get('disallowedTools')) ?? []),
    model: modelIn(fields.get('model')),
    effort: effortIn(Object.fromEntries(fields)),
    maxTurns: countIn(fields.get('max_turns') ?? fields.get('maxTurns')),
    onlyReads: fields.get('readonly') === 'true' || fields.get('permissionMode') === 'plan',
  };
}

/** Reads an agent in a TOML file of Codex. Source: developers.openai.com/codex/subagents, read 2026-11. */
export function readCodexAgent(fields: SettingsFields, fileName: string): Read {
  const prompt = textIn(fields['developer_instructions']);
  if (prompt === null) return { refused: 'it has no developer_instructions' };
  return {
    name: textIn(fields['name']) ?? fileName,
    description: textIn(fields['description']),
    prompt,
    tools: null,
    withoutTools: [],
    model: modelIn(fields['model']),
    effort: effortIn(fields),
    maxTurns: null,
    onlyReads: fields['sandbox_mode'] === 'read-only',
  };
}

/** Reads an agent in a Markdown file of opencode. Its name is that of the file. */
export function readOpencodeMarkdown(text: string, name: string): Read {
  const { fields, body } = readFrontMatter(text);
  const head = text.split(/^---[ \t]*$/m)[1] ?? '';
  const nested = { tools: blockIn(head, 'tools'), permission: blockIn(head, 'permission') };
  return readOpencodeAgent({ ...Object.fromEntries(fields), ...nested, prompt: body }, name);
}

/** Reads an agent of opencode. Source: opencode.ai/docs/agents, read 2026-11. */
export function readOpencodeAgent(fields: SettingsFields, name: string): Read {
  const prompt = textIn(fields['prompt']);
  if (isOn(fields['disable']) || isOn(fields['disabled'])) return { refused: 'it is disabled there' };
  if (prompt === null) return { refused: 'it has no prompt' };
  const tools = Object.entries(recordIn(fields['tools']));
  const denied = deniedTools(recordIn(fields['permission']));
  if ('refused' in denied) return denied;
  const isOff = tools.some(([tool, given]) => tool === '*' && !isOn(given));
  return {
    name,
    description: textIn(fields['description']),
    prompt,
    tools: isOff ? allNames(tools.filter(([, given]) => isOn(given)).map(([tool]) => tool)) : null,
    withoutTools: allNames([
      ...tools.filter(([tool, given]) => tool !== '*' && !isOn(given)).map(([tool]) => tool),
      ...denied.names,
    ]),
    model: modelIn(fields['model']),
    effort: effortIn(fields),
    maxTurns: countIn(fields['steps'] ?? fields['maxSteps']),
    onlyReads: denied.onlyReads,
  };
}

function isOn(value: unknown): boolean {
  return value === true || value === 'true';
}

/** Returns the tools that permissions deny. A denial for some commands or paths cannot be kept for one agent. */
function deniedTools(
  permission: SettingsFields,
): { readonly names: readonly string[]; readonly onlyReads: boolean } | RefusedAgent {
  const names: string[] = [];
  for (const [tool, given] of Object.entries(permission)) {
    const rules = typeof given === 'string' ? { '*': given } : recordIn(given);
    const partly = Object.entries(rules).find(([pattern, action]) => pattern !== '*' && action === 'deny');
    if (rules['*'] === 'deny') names.push(tool);
    else if (partly) return { refused: `it denies ${tool} ${partly[0]}: add that to rules.deny of the settings first` };
  }
  const onlyReads = names.includes('*');
  return { names: names.filter((name) => name !== '*'), onlyReads };
}

/** A line `key: value` of a block. */
interface BlockLine {
  readonly indent: number;
  readonly key: string;
  readonly value: string;
}

/** Reads a block of the fields at the head of a file: `key: value` in deeper lines, two levels deep. */
function blockIn(head: string, key: string): SettingsFields {
  const lines = head.split(/\r?\n/);
  const start = lines.findIndex((line) => line.startsWith(`${key}:`));
  const below = start < 0 ? [] : lines.slice(start + 1);
  const end = below.findIndex((line) => /^\S/.test(line));
  const block: Record<string, unknown> = {};
  const read = (end < 0 ? below : below.slice(0, end)).flatMap((line) => blockLine(line) ?? []);
  let open: Record<string, string> = {};
  for (const { indent, key: name, value } of read) {
    if (indent > (read[0]?.indent ?? 0)) open[name] = value;
    else if (value !== '') block[name] = value;
    else {
      open = {};
      block[name] = open;
    }
  }
  return block;
}

function blockLine(line: string): BlockLine | null {
  const found = /^(\s+)(?:"([^"]+)"|'([^']+)'|([^\s:#][^:]*)):\s*(.*?)\s*$/.exec(line);
  if (found === null) return null;
  const [, blanks = '', double, single, plain = '', value = ''] = found;
  const text = value.replace(/\s+#.*$/, '').replaceAll(/^["']|["']$/g, '');
  return { indent: blanks.length, key: double ?? single ?? plain, value: text };
}

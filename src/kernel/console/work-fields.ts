import { type EffortLevel, effortLevels } from '../core/model-names.js';
import { isServerPattern, isToolPattern } from '../core/tool-patterns.js';
import type { ToolChoice } from '../core/turn-settings.js';
import { type FrontMatter, oneLine } from '../config/front-matter.js';
import { withClaudeNames } from '../tools/foreign-tool-names.js';

/** The fields of agents, commands and skills that say with which model and tools they work, in the spellings of all
 * programs. */
export interface WorkFields extends ToolChoice {
  /** As written, without the effort behind `#`; null for that of the session. */
  readonly model: string | null;
  /** The file says that the model of the session is used. */
  readonly inheritsModel: boolean;
  readonly effort: EffortLevel | null;
  /** The calls that run without approval, as written; '' for none. */
  readonly allowedTools: string;
}

/** The spellings of a field. Sources: code.claude.com/docs/en/skills and /sub-agents, opencode.ai/docs/agents and
 * /commands, developers.openai.com/codex/subagents, and files of public repositories, read 2026-11. */
export const workSpellings = {
  effort: ['effort', 'reasoning_effort', 'reasoningEffort', 'model_reasoning_effort', 'variant'],
  withoutTools: ['disallowedTools', 'disallowed-tools', 'disallowed_tools', 'excludeTools'],
  allowedTools: ['allowed-tools', 'allowedTools', 'allowed_tools'],
} as const;

/** The keys that `readWorkFields` reads. */
export const workKeys: readonly string[] = ['model', 'tools', ...Object.values(workSpellings).flat()];

/** The spellings of the list of tools that run without approval. */
export const allowedToolsKeys: readonly string[] = workSpellings.allowedTools;

export type Fields = FrontMatter['fields'];

export function readWorkFields(fields: Fields): WorkFields {
  const { name, effort: ofModel } = modelIn(fields.get('model')?.trim() ?? '');
  const effort = firstOf(fields, workSpellings.effort);
  const without = firstOf(fields, workSpellings.withoutTools);
  const map = toolMap(fields.get('tools') ?? '');
  const written = fields.get('tools') ?? '*';
  const denied = [...listedTools(without.value), ...(map?.denied ?? [])];
  return {
    model: isOwnModel(name) ? null : oneLine(name, 100),
    inheritsModel: name === 'inherit',
    effort: effortOf(effort.value) ?? ofModel,
    tools: map === null ? offeredNames(written) : map.allowed,
    withoutTools: [...new Set(denied)].filter(isToolPattern),
    allowedTools: firstOf(fields, workSpellings.allowedTools).value,
  };
}

function isOwnModel(name: string): boolean {
  return name === '' || name === 'inherit' || name === 'default';
}

/** Reads `anthropic/claude-sonnet-4-5#high` of opencode. */
function modelIn(text: string): { readonly name: string; readonly effort: EffortLevel | null } {
  const [, name = text, level = ''] = /^(.+)#(\w+)$/.exec(text) ?? [];
  const effort = effortOf(level);
  return effort === null ? { name: text, effort } : { name, effort };
}

export function firstOf(fields: Fields, keys: readonly string[]): { readonly key: string; readonly value: string } {
  const key = keys.find((one) => fields.has(one)) ?? keys[0] ?? '';
  return { key, value: fields.get(key)?.trim() ?? '' };
}

export function effortOf(text: string): EffortLevel | null {
  return effortLevels.find((level) => level === text) ?? null;
}

/** Reads `{write: false, "github_*": true}` of opencode; null for another text. `allowed`: null for all but those that
 * are denied. */
export function toolMap(
  text: string,
): { readonly allowed: readonly string[] | null; readonly denied: readonly string[] } | null {
  const [, inside] = /^\{(.*)\}$/s.exec(text.trim()) ?? [];
  if (inside === undefined) return null;
  const entries = inside.split(',').flatMap((entry) => {
    const [, name = '', value = ''] = /^\s*["']?([^"':]+)["']?\s*:\s*["']?(\w+)["']?\s*$/.exec(entry) ?? [];
    return name === '' ? [] : [{ name: name.trim(), isOn: value === 'true' || value === 'allow' || value === 'ask' }];
  });
  const named = (isOn: boolean): readonly string[] =>
    entries.filter((entry) => entry.name !== '*' && entry.isOn === isOn).flatMap(({ name }) => namesInMap(name));
  const isOff = entries.some(({ name, isOn }) => name === '*' && !isOn);
  return { allowed: isOff ? named(true) : null, denied: named(false) };
}

/** A tool of a server is `server_tool` there. */
function namesInMap(name: string): readonly string[] {
  const names = withClaudeNames(name);
  const [server = '', ...rest] = name.split('_');
  const isForeign = names.length === 1 && rest.length > 0 && !isServerPattern(name);
  return isForeign ? [name, `mcp__${server}__${rest.join('_')}`] : names;
}

/** Returns the names in `Read, Bash(git diff:*)`. The parts in brackets are left to the rules of the user. */
export function listedTools(text: string): readonly string[] {
  const words = text.replaceAll(/\([^)]*\)|["'[\]]/g, '').split(/[\s,]+/);
  return [...new Set(words.filter((word) => word !== '').flatMap(withClaudeNames))];
}

function offeredNames(text: string): readonly string[] | null {
  const names = listedTools(text);
  return names.includes('*') ? null : names.filter(isToolPattern);
}

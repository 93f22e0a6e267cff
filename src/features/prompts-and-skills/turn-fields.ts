import { type FrontMatter, oneLine } from '../../kernel/config/front-matter.js';
import { readWorkFields } from '../../kernel/console/work-fields.js';
import { workProblems } from '../../kernel/console/work-problems.js';
import type { AgentNames } from '../../kernel/console/agent-names-port.js';
import type { Expansion } from '../../kernel/core/session-port.js';
import type { TurnSettings } from '../../kernel/core/turn-settings.js';
import { splitPatterns } from '../../kernel/core/tool-patterns.js';
import { unusedNotice } from './unused-fields.js';

/** The fields of a command or skill that are about the turn that it starts. */
export interface CommandFields {
  readonly turn: TurnSettings;
  /** The sub-agent that does the work; null for the conversation itself. */
  readonly delegate: string | null;
  /** Sentences about values that mean nothing here. */
  readonly problems: readonly string[];
}

/** The agents of a conversation in opencode and VS Code. Their work is that of every turn, or only reads. */
const ownAgents: Readonly<Record<string, 'usual' | 'reads'>> = {
  build: 'usual',
  agent: 'usual',
  edit: 'usual',
  default: 'usual',
  plan: 'reads',
  ask: 'reads',
};

/** The names of Claude Code for its sub-agents. */
const ourAgents: Readonly<Record<string, string>> = {
  Explore: 'explore',
  Plan: 'explore',
  'general-purpose': 'general',
};

/** Reads the fields in the spellings of Claude Code (`model`, `effort`, `allowed-tools`, `disallowed-tools`,
 * `context: fork`), opencode (`agent`, `subtask`, `variant`, a map of `tools`) and VS Code (`agent`, `mode`, a list of
 * `tools`). Sources: code.claude.com/docs/en/skills, opencode.ai/docs/commands,
 * code.visualstudio.com/docs/copilot/customization/prompt-files, read 2026-11. */
export function readCommandFields(fields: FrontMatter['fields'], kind: 'command' | 'skill'): CommandFields {
  const { model, effort, tools, withoutTools, allowedTools } = readWorkFields(fields);
  const worker = workerOf(fields, kind);
  const { delegate, onlyReads } = worker;
  return {
    turn: { model, effort, tools, withoutTools, onlyReads, allow: splitPatterns(allowedTools) },
    delegate,
    problems: [...workProblems(fields), ...worker.problems],
  };
}

interface Worker {
  readonly delegate: string | null;
  readonly onlyReads: boolean;
  readonly problems: readonly string[];
}

function workerOf(fields: FrontMatter['fields'], kind: 'command' | 'skill'): Worker {
  const field = (key: string): string => fields.get(key)?.trim() ?? '';
  const written = field('agent') || field('mode');
  const own = Object.hasOwn(ownAgents, written) ? ownAgents[written] : undefined;
  const named = own === undefined ? agentNamed(written) : null;
  const isApart = field('context') === 'fork' || field('subtask') === 'true';
  const why = whyHere(kind, field('subtask'));
  const isIgnored = named !== null && !isApart && why !== null;
  return {
    delegate: isIgnored ? null : (named ?? (isApart ? 'general' : null)),
    onlyReads: own === 'reads',
    problems: [...unknownContext(field('context')), ...(isIgnored ? [`agent ${named} is ignored ${why}.`] : [])],
  };
}

function agentNamed(written: string): string | null {
  return written === '' ? null : (ourAgents[written] ?? oneLine(written, 64));
}

/** Returns why the conversation does the work although an agent is named; null if the agent does it. */
function whyHere(kind: 'command' | 'skill', subtask: string): string | null {
  if (kind === 'skill') return 'without context: fork';
  return subtask === 'false' ? 'because subtask is false' : null;
}

function unknownContext(context: string): readonly string[] {
  if (['', 'fork', 'inherit'].includes(context)) return [];
  return [`context ${oneLine(context, 40)} is ignored; write context: fork.`];
}

/** Describes the fields in lines of a list. */
export function turnLines({ turn, delegate }: CommandFields): readonly string[] {
  const { model, effort, tools, withoutTools, onlyReads, allow } = turn;
  const used = [
    ...(model === null ? [] : [`model ${oneLine(model, 100)}`]),
    ...(effort === null ? [] : [`effort ${effort}`]),
    ...(tools === null ? [] : [`only the tools ${tools.join(', ') || '(none)'}`]),
    ...(withoutTools.length === 0 ? [] : [`without the tools ${withoutTools.join(', ')}`]),
    ...(onlyReads ? ['only reads'] : []),
    ...(delegate === null ? [] : [`done by the agent ${delegate}`]),
  ];
  return [
    ...(used.length === 0 ? [] : [`  ${used.join('; ')}`]),
    ...(allow.length === 0 ? [] : [`  runs without approval: ${oneLine(allow.join(', '), 200)}`]),
  ];
}

/** Returns the fields as a row of a list has them. */
export function turnRow({ turn, delegate }: CommandFields): Readonly<Record<string, unknown>> {
  const { model, effort, tools, withoutTools, onlyReads, allow } = turn;
  return {
    allowed_tools: allow.length === 0 ? null : allow.join(', '),
    ...{ model, effort, tools, disallowed_tools: withoutTools, only_reads: onlyReads, agent: delegate },
  };
}

/** Returns what a command or skill adds to its message: the settings of its turn, and who does its work. `name`: as it
 * was typed. `agents`: the names of sub-agents that can work here. */
export async function turnExpansion(
  name: string,
  { turn, delegate, unused, problems }: CommandFields & { readonly unused: readonly string[] },
  agents: AgentNames,
): Promise<Pick<Expansion, 'turn' | 'delegate' | 'notice'>> {
  const known = delegate === null ? [] : await agents();
  const isThere = delegate !== null && known.includes(delegate);
  const missing = delegate === null || isThere ? [] : [missingAgent(delegate, known)];
  return {
    turn,
    ...(isThere ? { delegate } : {}),
    notice: unusedNotice(name, { unused, problems: [...problems, ...missing] }),
  };
}

function missingAgent(name: string, known: readonly string[]): string {
  const why =
    known.length === 0
      ? 'the tool agent is not offered here (--tools +agents offers it)'
      : `there is no agent of this name. Known: ${known.join(', ')}`;
  return `its agent ${name} cannot do it, so it is done in this conversation: ${why}.`;
}

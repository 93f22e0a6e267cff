import type { CallTarget } from '../../core/event.js';
import type { Policy, Verdict } from '../../core/policy.js';
import type { Tool } from '../../core/tool.js';
import type { AgentRole, StricterMode } from './roles.js';

/** No agent starts another one, puts questions of its own to the person, or leaves anything running. */
const neverTheirs: readonly string[] = ['agent', 'ask_user', 'propose_plan', 'jobs'];

/** The names that another program has for a tool of ours. */
type TheirNames = (tool: string) => readonly string[];

/** The tools that an agent has of those of its session. One that names tools of servers has the tools that reach
 * them. */
export function toolsOf(
  { tools, withoutTools }: AgentRole,
  offered: readonly Tool[],
  theirs: TheirNames,
): readonly Tool[] {
  const isNamed = ({ name, otherNames = [] }: Tool, names: readonly string[]): boolean =>
    [name, ...otherNames, ...theirs(name)].some((other) => names.includes(other));
  const reaches = ({ toolset }: Tool): boolean => toolset.name === 'mcp' && tools?.some(isOfServer) === true;
  return offered.filter(
    (tool) =>
      !neverTheirs.includes(tool.name) &&
      (tools === null || isNamed(tool, tools) || reaches(tool)) &&
      !isNamed(tool, withoutTools),
  );
}

/** Whether an agent may call this tool of a server: by its name, or `mcp__github` for all of a server. */
export function mayReach({ tools, withoutTools }: AgentRole, { name, server }: CallTarget): boolean {
  const names = [name, `mcp__${server}`];
  const isListed = tools?.some(isOfServer) !== true || names.some((other) => tools.includes(other));
  return isListed && !names.some((other) => withoutTools.includes(other));
}

function isOfServer(name: string): boolean {
  return name.startsWith('mcp__');
}

/** Puts an agent's own strictness over a policy: nothing is allowed that the session would not allow. */
export function stricter(policy: Policy, mode: StricterMode | null, agent: string): Policy {
  if (mode === null || mode === 'dangerous' || mode === 'dontAsk') return policy;
  return {
    ...policy,
    assess: async (...call) => heldBy(mode, agent, await policy.assess(...call)),
  };
}

function heldBy(mode: 'plan' | 'always' | 'mutating', agent: string, verdict: Verdict): Verdict {
  const { risk, decision } = verdict;
  if (mode === 'plan') {
    if (risk === 'read-only' || decision === 'deny') return verdict;
    return { ...verdict, decision: 'deny', reasons: [`the agent ${agent} only reads`, ...verdict.reasons] };
  }
  if (decision !== 'allow' || (mode === 'mutating' && risk === 'read-only')) return verdict;
  return { ...verdict, decision: 'ask', reasons: [`calls of the agent ${agent} are asked about`, ...verdict.reasons] };
}

import type { CallTarget } from '../core/event.js';
import type { Tool } from '../core/tool.js';
import { isServerPattern, matchesTool } from '../core/tool-patterns.js';
import type { ToolChoice } from '../core/turn-settings.js';
import { theirNames } from './claude-names.js';

/** Returns true if a tool is among the chosen ones. A choice that names tools of servers has the tools that reach
 * them. */
export function isChosen(
  { tools, withoutTools }: ToolChoice,
  { name, otherNames = [], toolset }: Tool,
  theirs: (tool: string) => readonly string[] = theirNames,
): boolean {
  const names = [name, ...otherNames, ...theirs(name)];
  const isNamed = (patterns: readonly string[]): boolean => patterns.some((pattern) => matchesTool(pattern, names));
  const reaches = toolset.name === 'mcp' && tools?.some(isServerPattern) === true;
  return (tools === null || isNamed(tools) || reaches) && !isNamed(withoutTools);
}

/** Returns true if this tool of a server may be called. A choice that names no tools of servers allows all of them. */
export function mayReach({ tools, withoutTools }: ToolChoice, { name, server }: CallTarget): boolean {
  const isNamed = (pattern: string): boolean => matchesTool(pattern, [name], [server]);
  const isListed = tools?.some(isServerPattern) !== true || tools.some(isNamed);
  return isListed && !withoutTools.some(isNamed);
}

import type { ToolArgs } from './tool.js';

/** Arguments that the brackets of a rule are about, for tools that take neither a command nor a path. */
const subjects: Readonly<Record<string, string>> = { agent: 'agent', skill: 'name', web_search: 'query' };

/** Returns what a call is about in the brackets of a rule: the host of a page, the name of a skill or agent, or a query.
 * Null for other tools. */
export function subjectOf(tool: string, args: ToolArgs): string | null {
  if (tool === 'web_fetch' || tool === 'api_call') {
    const url = String(args['url']);
    return URL.canParse(url) ? new URL(url).hostname : null;
  }
  const key = Object.hasOwn(subjects, tool) ? subjects[tool] : undefined;
  const given = key === undefined ? undefined : args[key];
  return typeof given === 'string' ? given : null;
}

/** Returns true for a tool whose calls are about a name. */
export function hasSubject(tool: string): boolean {
  return Object.hasOwn(subjects, tool);
}

/** Returns true if a pattern names one of these tools. Patterns are those of Claude Code: a name, `mcp__server` or
 * `mcp__server__*` for all tools of a server, and `*` for any characters: `mcp__*`, `mcp__server__get_*`.
 * `servers` holds the servers that the tools belong to; a name alone does not say where its server ends.
 * Source: code.claude.com/docs/en/sub-agents and /permissions, read 2026-11. */
export function matchesTool(pattern: string, names: readonly string[], servers: readonly string[] = []): boolean {
  if (names.includes(pattern)) return true;
  if (servers.some((server) => pattern === `mcp__${server}` || pattern === `mcp__${server}__*`)) return true;
  if (!pattern.includes('*')) return false;
  const parts = pattern.split('*').map((part) => part.replaceAll(/[\\^$.|?+()[\]{}]/g, '\\$&'));
  const test = new RegExp(`^${parts.join('.*')}$`, 's');
  return names.some((name) => test.test(name));
}

/** Returns true if a pattern names tools of MCP servers. */
export function isServerPattern(pattern: string): boolean {
  return pattern.startsWith('mcp__');
}

/** Returns true for a name of a tool, with or without stars. */
export function isToolPattern(text: string): boolean {
  return /^(?:\*|[\p{L}\p{N}_][\p{L}\p{M}\p{N}_.*-]*)$/u.test(text) && !/^mcp_{0,2}$|^mcp__.+__$/.test(text);
}

/** Returns true if a pattern names one of these tools. Patterns are those of Claude Code: a name, `mcp__server` or
 * `mcp__server__*` for all tools of a server, and `*` for any characters: `mcp__*`, `mcp__server__get_*`.
 * `servers` holds the servers that the tools belong to; a name alone does not say where its server ends.
 * Source: code.claude.com/docs/en/sub-agents and /permissions, read 2026-11. */
export function matchesTool(pattern: string, names: readonly string[], servers: readonly string[] = []): boolean {
  return withShortServers(pattern).some((one) => matchesName(one, names, servers));
}

function matchesName(pattern: string, names: readonly string[], servers: readonly string[]): boolean {
  if (names.includes(pattern)) return true;
  if (servers.some((server) => pattern === `mcp__${server}` || pattern === `mcp__${server}__*`)) return true;
  if (!pattern.includes('*')) return false;
  const parts = pattern.split('*').map((part) => part.replaceAll(/[\\^$.|?+()[\]{}]/g, '\\$&'));
  const test = new RegExp(`^${parts.join('.*')}$`, 's');
  return names.some((name) => test.test(name));
}

const maxServerName = 24;

/** Returns the names that a server has here whose name in a file cannot be used. `unique`: where another server has the
 * plain one. */
export function shortServerNames(written: string): { readonly plain: string; readonly unique: string } {
  const plain = written.replaceAll(/[^A-Za-z0-9-]+/g, '_').slice(0, maxServerName) || 'server';
  const hash = shortHash(written);
  return { plain, unique: `${plain.slice(0, maxServerName - hash.length - 1)}-${hash}` };
}

/** Returns six hex digits that differ between names. Source: FNV-1a, 32 bits. */
function shortHash(text: string): string {
  let hash = 0x81_1c_9d_c5;
  for (const byte of new TextEncoder().encode(text)) hash = Math.imul(hash ^ byte, 0x01_00_01_93);
  return (hash >>> 0).toString(16).padStart(8, '0').slice(0, 6);
}

/** Adds the patterns that a pattern becomes where it names a server by a name that is too long to be used here. */
function withShortServers(pattern: string): readonly string[] {
  const [, server = '', rest = ''] = /^mcp__([^*]+?)(__.*)?$/s.exec(pattern) ?? [];
  if (server.length <= maxServerName) return [pattern];
  const { plain, unique } = shortServerNames(server);
  return [pattern, `mcp__${plain}${rest}`, `mcp__${unique}${rest}`];
}

/** Returns true if a pattern names tools of MCP servers. */
export function isServerPattern(pattern: string): boolean {
  return pattern.startsWith('mcp__');
}

/** Returns true for a name of a tool, with or without stars. */
export function isToolPattern(text: string): boolean {
  return /^(?:\*|[\p{L}\p{N}_][\p{L}\p{M}\p{N}_.*-]*)$/u.test(text) && !/^mcp_{0,2}$|^mcp__.+__$/.test(text);
}

/** Splits a list of patterns at commas and spaces that stand outside of brackets. */
export function splitPatterns(text: string): readonly string[] {
  const found: string[] = [];
  let current = '';
  let depth = 0;
  for (const char of text) {
    if (char === '(') depth++;
    if (char === ')') depth = Math.max(0, depth - 1);
    if (depth > 0 || !/[\s,]/.test(char)) current += char;
    else {
      found.push(current);
      current = '';
    }
  }
  return [...found, current].filter((pattern) => pattern !== '');
}

import type { Toolset } from '../../kernel/core/tool.js';

export const mcpToolset = {
  name: 'mcp',
  on: true,
  lazy: true,
  about: 'Offer the tools of the MCP servers in mcp.json.',
} as const satisfies Toolset;

/** The tools through which a model reaches those of servers. */
export const fixedTools: readonly string[] = ['tool_search', 'tool_run'];

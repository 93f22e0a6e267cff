import type { Toolset } from '../../kernel/core/tool.js';

export const mcpToolset = {
  name: 'mcp',
  on: true,
  lazy: true,
  about: 'Offer the tools of MCP servers, where mcp.json names some.',
} as const satisfies Toolset;

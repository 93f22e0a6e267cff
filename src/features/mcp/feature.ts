import type { Feature } from '../../kernel/console/feature.js';
import { mcpToolset } from './mcp-toolset.js';
import { runningServers } from './mcp-parts.js';

/** Servers of the Model Context Protocol. */
export const mcp: Feature = {
  name: 'mcp',
  toolsets: [
    {
      ...mcpToolset,
      tools: ['tool_search', 'tool_run'],
      grows: true,
      load: async ({ parts }) => (await parts.get(runningServers)())?.tools ?? [],
    },
  ],
  commands: [
    {
      heading: 'Tools, models and settings:',
      entries: [
        {
          line: ['mcp', 'list, show, add, import, remove and try MCP servers'],
          slash: ['mcp [name]', 'the MCP servers of this session; reconnect, login, enable, disable <name>'],
          load: async () => (await import('./use-servers.js')).mcp,
        },
        {
          line: ['mcp list', 'the servers of mcp.json; starts none'],
          load: async () => (await import('./use-servers.js')).listServers,
        },
        {
          line: ['mcp get <name>', 'its entry'],
          load: async () => (await import('./use-servers.js')).showServer,
        },
        {
          line: ['mcp add <name> [command...]', 'a server by its command line behind --, or by --url'],
          load: async () => (await import('./use-servers.js')).addServer,
        },
        {
          line: ['mcp remove <name>', 'take it out of mcp.json'],
          load: async () => (await import('./use-servers.js')).removeServer,
        },
        {
          line: ['mcp import <client>', 'copy the servers of claude-code, codex, cursor, vscode, gemini or opencode'],
          load: async () => (await import('./import-servers.js')).importServers,
        },
        {
          line: ['mcp test <name>', 'connect to it and list its tools'],
          load: async () => (await import('./use-servers.js')).testServer,
        },
        {
          line: ['mcp login <name>', 'sign in to a server that asks for it'],
          load: async () => (await import('./sign-in-to-server.js')).signIn,
        },
        {
          line: ['mcp logout <name>', 'delete what a sign-in gave'],
          load: async () => (await import('./sign-in-to-server.js')).signOut,
        },
        {
          line: ['mcp serve', 'offer our tools to another program, as an MCP server over standard input and output'],
          load: async () => (await import('./use-servers.js')).serveTools,
        },
      ],
    },
  ],
  projectParts: async (here) => await (await import('./server-files.js')).serverParts(here),
};

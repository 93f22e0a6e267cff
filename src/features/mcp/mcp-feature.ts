import { existsSync } from 'node:fs';
import type { Feature } from '../../kernel/console/feature.js';
import { fixedTools, mcpToolset } from './mcp-toolset.js';
import { openedServers, runningServers } from './mcp-parts.js';
import { openServerPart, openServerTools, serverParts } from './mcp-start.js';

const load = () => import('./mcp-code.js');
const loadImports = () => import('./server-imports-code.js');

/** Servers that nobody knows yet are asked what they offer this long after the screen is shown. */
const discoverAfterMs = 500;

/** Servers of the Model Context Protocol. */
export const mcp: Feature = {
  name: 'mcp',
  toolsets: [
    {
      ...mcpToolset,
      tools: fixedTools,
      grows: true,
      load: async ({ parts }) => (await parts.get(runningServers)())?.tools ?? [],
    },
  ],
  commands: [
    {
      heading: 'Tools, models and settings:',
      entries: [
        {
          line: ['mcp', 'List, show, add, import, remove and test MCP servers'],
          slash: ['mcp [name]', 'Show MCP servers; reconnect, login, enable or disable <name>', 'tools'],
          also: 'servers connectors',
          load: async () => (await load()).mcp,
        },
        {
          line: ['mcp list', 'List the servers of mcp.json without starting them'],
          load: async () => (await load()).listServers,
        },
        {
          line: ['mcp get <name>', "Show a server's entry"],
          load: async () => (await load()).showServer,
        },
        {
          line: ['mcp add <name> [command...]', 'Add a server by its command line after --, or by --url'],
          load: async () => (await load()).addServer,
        },
        {
          line: ['mcp remove <name>', 'Remove a server from mcp.json'],
          load: async () => (await load()).removeServer,
        },
        {
          line: ['mcp import <client>', 'Import servers of another program, such as claude-code, codex or zed'],
          load: async () => (await loadImports()).importServers,
        },
        {
          line: ['mcp test <name>', 'Connect to a server and list its tools'],
          load: async () => (await load()).testServer,
        },
        {
          line: ['mcp login <name>', 'Sign in to a server'],
          load: async () => (await load()).signIn,
        },
        {
          line: ['mcp logout <name>', "Delete a server's sign-in"],
          load: async () => (await load()).signOut,
        },
        {
          line: ['mcp serve', 'Offer our tools as an MCP server over standard input and output'],
          load: async () => (await load()).serveTools,
        },
      ],
    },
  ],
  importers: async () => [(await loadImports()).serverImporter],
  projectParts: async (here) => await serverParts(here, load),
  storedSecrets: async ({ signIns }) => (existsSync(signIns) ? (await load()).signInSecrets(signIns) : []),
  openTools: (host) => Promise.resolve(openServerTools(host, load)),
  openRun: (host) => Promise.resolve(openServerPart(host, load)),
  openRepl: (host) => {
    const start = (): void => {
      // To load the code of servers must not hold up the first keys.
      host.schedule(() => {
        void host.parts
          .get(openedServers)()
          .then((servers) => servers?.discover(new AbortController().signal));
      }, discoverAfterMs);
    };
    return Promise.resolve({ start });
  },
};

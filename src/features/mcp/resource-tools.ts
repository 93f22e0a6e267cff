import type { ToolOutcome } from '../../kernel/core/tool.js';
import { type DefinedTool, defineTool, failed, succeeded } from '../../kernel/tools/define-tool.js';
import { isRecord } from '../../kernel/core/json.js';
import { outcomeOf } from './call-result.js';
import type { Called, Servers } from './servers.js';

export const readResourceName = 'mcp_read_resource';
const maxShown = 100;

/** The tools for resources of servers, which are found and called as those of servers are. */
export function resourceTools(servers: Servers): readonly DefinedTool[] {
  return [listTool(servers), readTool(servers)];
}

function listTool(servers: Servers): DefinedTool {
  return defineTool({
    name: 'mcp_list_resources',
    description: 'Lists the resources (texts, files) that MCP servers offer, with their addresses.',
    effect: 'network',
    untrusted: true,
    schema: {
      type: 'object',
      additionalProperties: false,
      properties: { server: { type: 'string' }, query: { type: 'string', description: 'a part of name or address' } },
    },
    judge: () => ({ risk: 'read-only', reasons: [] }),
    run: async ({ server, query = '' }, { signal }) => {
      await servers.discover(signal);
      if (signal.aborted) return failed('cancelled', 'mcp_list_resources was cancelled before it finished.');
      const sought = query.toLowerCase();
      const found = servers
        .texts()
        .filter((texts) => server === undefined || texts.server === server)
        .flatMap((texts) => texts.resources.map((resource) => ({ server: texts.server, ...resource })))
        .filter(({ uri, name, about }) => `${uri} ${name} ${about}`.toLowerCase().includes(sought));
      const more = found.length - maxShown;
      const output = JSON.stringify({ resources: found.slice(0, maxShown), ...(more > 0 ? { more } : {}) });
      return succeeded(`${found.length} resources`, { output, untrusted: true });
    },
  });
}

function readTool(servers: Servers): DefinedTool {
  return defineTool({
    name: readResourceName,
    description: 'Reads a resource of an MCP server by its address.',
    effect: 'network',
    untrusted: true,
    schema: {
      type: 'object',
      additionalProperties: false,
      properties: { server: { type: 'string' }, uri: { type: 'string', maxLength: 1024 } },
      required: ['server', 'uri'],
    },
    // An address that the server lists itself reveals nothing to it; any other may.
    judge: ({ server, uri }) =>
      servers.texts().some((texts) => texts.server === server && texts.resources.some((one) => one.uri === uri))
        ? {
            risk: 'read-only',
            reasons: [],
          }
        : {
            risk: 'dangerous',
            reasons: [`the server ${server} does not list ${uri}: what it receives cannot be analysed`],
          },
    run: async ({ server, uri }, { signal }) => {
      const asked = await servers.ask(server, (connection) => connection.read(uri, signal), signal);
      if (signal.aborted) return failed('cancelled', `${readResourceName} was cancelled before it finished.`);
      return readOutcome(server, asked);
    },
  });
}

function readOutcome(server: string, asked: Called): ToolOutcome {
  if (asked.kind !== 'answered')
    return failed(
      'execution_failed',
      `The server ${server}: ${asked.kind === 'failed' ? asked.problem : 'it has changed'}`,
    );
  const contents = isRecord(asked.result) && Array.isArray(asked.result['contents']) ? asked.result['contents'] : [];
  return outcomeOf(server, { content: contents.map((resource: unknown) => ({ type: 'resource', resource })) });
}

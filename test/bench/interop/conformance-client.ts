import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FormAnswer } from '../../../src/kernel/core/form.js';
import { isRecord } from '../../../src/kernel/core/json.js';
import { configuredServer } from '../../../src/features/mcp/configured-servers.js';
import { openSignIns } from '../../../src/features/mcp/access/kept-sign-ins.js';
import { type McpConnection, unheard } from '../../../src/features/mcp/open-connection.js';
import { httpLink } from '../../../src/features/mcp/server-link.js';
import { type Callback, signIn, type SignInNeeded, withSignIn } from '../../../src/features/mcp/access/sign-in.js';
import { createProcessRunner } from '../../../src/kernel/tools/process/runner.js';

const { open } = createProcessRunner({ marker: { name: '_AGENT_TEST', value: String(process.pid) } });

const redirectUrl = 'http://127.0.0.1:33418/callback';

/** A person whose browser says yes to everything. */
const callback: Callback = {
  redirectUrl,
  visit: async (address) => {
    const { headers } = await fetch(address, { redirect: 'manual' });
    return new URL(headers.get('location') ?? '', address);
  },
};

/** Acts as `agent` would for one scenario of the conformance suite: connects to the server with our own client, lists
 * what it has, calls each of its tools once, and signs in where it is asked to. Rejects where something of it fails. */
export async function playScenario(scenario: string, url: string, context: unknown): Promise<void> {
  const given = isRecord(context) ? context : {};
  const folder = mkdtempSync(join(tmpdir(), 'agent-conformance-'));
  const clientId = given['client_id'] ?? 'https://conformance-test.local/client-metadata.json';
  const oauth = { client_id: clientId, client_secret: given['client_secret'] };
  const entry = { url, oauth, timeout_ms: 10_000 };
  const server = configuredServer('tried', entry, 'mcp.json', { env: {}, cwd: folder, home: folder });
  const { way } = server;
  if (way.kind !== 'http') throw new Error(JSON.stringify(way));
  const signIns = openSignIns(join(folder, 'mcp-auth.json'), () => undefined);
  const link = httpLink(server, way, { version: '1', signIns, env: {}, open });
  const sdk = await import('@modelcontextprotocol/client');
  const person = async (needed: SignInNeeded): Promise<void> => {
    await signIn(sdk, { url: way.url, settings: way.signIn, signIns, callback, needed, send: fetch });
  };
  try {
    const connect = async (): Promise<McpConnection> => await link.connect(unheard);
    const connection = await withSignIn(sdk, connect, person);
    for (const [name, args] of callsOf(connection.tools, given['toolCalls']))
      await withSignIn(sdk, () => call(connection, name, args), person);
    // The second call meets whatever the server has changed since the first one.
    if (scenario.startsWith('auth/'))
      for (const [name, args] of callsOf(connection.tools, undefined))
        await withSignIn(sdk, () => call(connection, name, args), person);
  } finally {
    await link.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function call(connection: McpConnection, name: string, args: Readonly<Record<string, unknown>>): Promise<void> {
  await connection.call(name, args, {
    signal: new AbortController().signal,
    onProgress: () => undefined,
    putForm: async ({ fields }): Promise<FormAnswer> => {
      const needed = fields.filter((field) => field.required && field.preset === undefined);
      const values = needed.map(({ name: own, kind, options }) => [own, options?.[0]?.value ?? sample(kind)] as const);
      return await Promise.resolve({ answer: 'filled', values: Object.fromEntries(values) });
    },
  });
}

/** The calls that a scenario asks for; else one of each tool. */
function callsOf(
  tools: readonly unknown[],
  asked: unknown,
): readonly (readonly [string, Readonly<Record<string, unknown>>])[] {
  if (Array.isArray(asked))
    return asked.filter(isRecord).map((one) => {
      const { name, arguments: args } = one;
      return [String(name), isRecord(args) ? args : {}];
    });
  return tools.filter(isRecord).map(({ name, inputSchema }) => {
    const properties = isRecord(inputSchema) && isRecord(inputSchema['properties']) ? inputSchema['properties'] : {};
    const args = Object.entries(properties).map(([own, schema]) => [
      own,
      sample(isRecord(schema) ? schema['type'] : ''),
    ]);
    return [String(name), Object.fromEntries(args) as Readonly<Record<string, unknown>>];
  });
}

function sample(type: unknown): string | number | boolean {
  if (type === 'number' || type === 'integer') return 5;
  return type === 'boolean' ? true : 'text';
}

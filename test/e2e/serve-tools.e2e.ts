import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import { agent, binary, place } from './program.js';

test.each([
  ['2025-11-25', 'legacy'],
  ['2026-07-28', { pin: '2026-07-28' }],
] as const)('a client of the official package is served over %s', async (version, mode) => {
  const at = place({ 'a.txt': 'hello\n' });
  const kept = at.file('kept.txt', '');
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [binary, 'mcp', 'serve'],
    cwd: at.work,
    env: at.env,
    stderr: 'pipe',
  });
  const client = new Client(
    { name: 'official', version: '1' },
    { capabilities: { elicitation: {} }, versionNegotiation: { mode } },
  );
  const asked: string[] = [];
  client.setRequestHandler('elicitation/create', ({ params }) => {
    asked.push(params.message);
    return { action: 'accept', content: { answer: asked.length === 1 ? 'no' : 'yes, once' } };
  });
  await client.connect(transport);
  expect(client.getNegotiatedProtocolVersion()).toBe(version);
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name)).toEqual(['glob', 'file_read', 'grep', 'file_write', 'file_edit', 'bash']);
  const said: (string | undefined)[] = [];
  const onprogress = ({ message }: { readonly message?: string | undefined }): unknown => said.push(message);
  const call = async (name: string, args: Record<string, unknown>) =>
    await client.callTool({ name, arguments: args }, { onprogress });
  expect(await call('file_read', { path: 'a.txt' })).toMatchObject({ content: [{ text: 'hello\n' }] });
  expect(await call('bash', { command: 'echo begun; sleep 0.3' })).toMatchObject({
    content: [{ text: 'begun\n' }, {}],
  });
  expect(said).toEqual(['begun']);
  const removal = { command: 'rm -rf kept.txt' };
  expect(await call('bash', removal)).toMatchObject({
    isError: true,
    content: [{ text: 'The user denied this.' }, {}],
  });
  expect(existsSync(kept)).toBe(true);
  expect(await call('bash', removal)).toMatchObject({ content: [{ text: '' }, {}] });
  expect(existsSync(kept)).toBe(false);
  expect(asked).toHaveLength(2);
  const stop = new AbortController();
  const stopped = client.callTool(
    { name: 'bash', arguments: { command: 'echo on; sleep 600' } },
    {
      signal: stop.signal,
      onprogress: () => {
        stop.abort();
      },
    },
  );
  await expect(stopped).rejects.toThrow();
  expect(await call('bash', { command: 'echo after' })).toMatchObject({ content: [{ text: 'after\n' }, {}] });
  await client.close();
  const audit = (await agent(at, ['audit'])).stdout;
  expect(audit.split('\n').filter((line) => line.includes('rm -rf'))).toEqual([
    expect.stringContaining('deny (user)'),
    expect.stringContaining('allow (user)'),
  ]);
  expect(audit).toMatch(/cancelled +allow \(policy\) +bash\(command="echo on; sleep 600"\)/);
});

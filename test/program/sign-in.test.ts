import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { signingServer } from '../features/mcp/signing-server.js';
import { agent, place, repl, script } from './inside.js';

test('agent mcp login signs in, what it gave is masked everywhere, and logout deletes it', async () => {
  const at = place();
  const server = await signingServer();
  const file = join(at.env.AGENT_HOME ?? '', 'mcp-auth.json');
  await agent(at, ['mcp', 'add', 'tried', '--url', server.url]);
  const refused = await agent(at, ['mcp', 'test', 'tried']);
  expect(refused).toMatchObject({ code: 1 });
  expect(refused.stderr).toContain('`tried`: it needs a sign-in: agent mcp login tried');
  const stdin = new PassThrough();
  let isOpened = false;
  const done = await agent(at, ['mcp', 'login', 'tried', '--manual'], {
    stdin,
    onStdout: (text) => {
      const address = /^http\S+$/m.exec(text)?.[0];
      if (address === undefined || isOpened) return;
      isOpened = true;
      void fetch(address, { redirect: 'manual' }).then(({ headers }) => {
        stdin.write(`${headers.get('location') ?? ''}\n`);
      });
    },
  });
  expect(done).toMatchObject({ code: 0 });
  expect(done.stdout).toContain('Signed in to tried: 1 tools.');
  expect((await agent(at, ['mcp', 'test', 'tried'])).stdout).toContain('mcp__tried__echo');
  const token = [...server.valid].at(-1) ?? '';
  expect(readFileSync(file, 'utf8')).toContain(token);
  const said = await agent(at, ['-p', '-m', script(at, [{ text: `it is ${token}.` }]), 'hello']);
  expect(said.stdout).not.toContain(token);
  expect(said.stdout).toContain('«redacted:mcp-auth.json»');
  expect((await agent(at, ['mcp', 'logout', 'tried'])).stdout).toContain('Signed out of tried');
  expect(existsSync(file) && readFileSync(file, 'utf8').includes(token)).toBe(false);
  expect((await agent(at, ['mcp', 'logout', 'tried'])).stdout).toContain('Nobody was signed in');
});

test('a program takes no sign-in, and an unknown name is told the known ones', async () => {
  const at = place();
  await agent(at, ['mcp', 'add', 'files', '--', 'true']);
  expect(await agent(at, ['mcp', 'login', 'files'])).toMatchObject({ code: 2 });
  expect((await agent(at, ['mcp', 'login', 'file'])).stderr).toContain('Did you mean files?');
});

test('/mcp login signs in with the browser and connects the server in the same session', async () => {
  const at = place();
  const server = await signingServer();
  await agent(at, ['mcp', 'add', 'tried', '--url', server.url]);
  let visits = 0;
  const onStdout = (text: string): void => {
    const address = /^http\S+$/m.exec(text)?.[0];
    if (address === undefined || visits > 0) return;
    visits++;
    // A browser follows the issuer back to the port of the session.
    void fetch(address);
  };
  const model = script(at, [{ text: 'hello' }]);
  const { stdout } = await repl(
    at,
    ['-m', model],
    [
      ['/mcp reconnect tried', 'tried: it needs a sign-in'],
      ['/mcp login tried', 'tried is connected.'],
      ['/mcp tried', 'mcp__tried__echo'],
    ],
    { onStdout },
  );
  expect(visits).toBe(1);
  expect(stdout).not.toContain([...server.valid].at(-1) ?? '');
});

test('/mcp login that is given up connects nothing, and a program takes no sign-in', async () => {
  const at = place();
  const server = await signingServer();
  await agent(at, ['mcp', 'add', 'tried', '--url', server.url]);
  await agent(at, ['mcp', 'add', 'files', '--', 'true']);
  await repl(
    at,
    ['-m', script(at, [{ text: 'hello' }])],
    [
      ['/mcp login tried', 'Waiting for the browser.'],
      ['', 'tried: nobody signed in'],
      ['/mcp login files', 'files: it is a local program and needs no sign-in'],
    ],
  );
  expect(existsSync(join(at.env.AGENT_HOME ?? '', 'mcp-auth.json')) ? server.valid.size : 0).toBe(0);
});

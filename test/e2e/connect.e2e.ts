import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { agent, binary, place, type Place } from './program.js';
import { openProgram, openScreen } from './terminal.js';

const right = 'sk-or-v1-right-0123456789abcdef0123';
const wrong = 'sk-or-v1-wrong-0123456789abcdef0123';

interface KeyedServer {
  readonly url: string;
  /** The keys of the requests for an answer, in order. */
  readonly asked: readonly string[];
  /** From now on this key is right, and no other. */
  rotate(key: string): void;
}

/** A model that answers whoever has the right key: a list of models, and a sentence. */
async function keyedServer(): Promise<KeyedServer> {
  const asked: string[] = [];
  let key = right;
  const server = createServer((request, response) => {
    request.resume();
    const given = request.headers.authorization?.replace('Bearer ', '') ?? '';
    if (request.method === 'POST') asked.push(given);
    const send = (status: number, body: unknown): void => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    };
    if (given !== key) send(401, { error: { message: 'No auth credentials found', code: 401 } });
    else if (request.method === 'GET')
      send(200, { data: [{ id: 'tiny', context_length: 32_000 }, { id: 'anthropic/claude-sonnet-5' }] });
    else {
      const chunk = (delta: object, finish: string | null): string =>
        `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.end(
        `${chunk({ role: 'assistant', content: 'A real answer.' }, null)}${chunk({}, 'stop')}data: [DONE]\n\n`,
      );
    }
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    asked,
    rotate: (next) => {
      key = next;
    },
  };
}

/** The files below the home that hold `text`. */
function filesWith(at: Place, text: string): readonly string[] {
  return readdirSync(at.home, { recursive: true, encoding: 'utf8' }).filter((name) => {
    const path = join(at.home, name);
    return statSync(path).isFile() && readFileSync(path).includes(text);
  });
}

const waiting = /keys go to your message/;

test('from a fresh home to an answer without leaving the program; the key is in one file alone', async () => {
  const at = place();
  const server = await keyedServer();
  const env = { OPENROUTER_BASE_URL: server.url };
  const screen = openScreen(at, [], { env });
  await screen.until(/Press Enter or type \/login[\s\S]*❯/);
  screen.type('\r');
  await screen.until(/Connect a model[\s\S]*Filter:/);
  screen.type('\r');
  await screen.until(/Or set OPENROUTER_API_KEY instead\n[\s\S]*Key of OpenRouter:/);
  screen.type(`\x1b[200~${wrong}\x1b[201~`);
  await screen.until(/Key of OpenRouter: ·+ {2}\(35 characters\)/);
  screen.type('\r');
  await screen.until(/OpenRouter rejected this key[\s\S]*Key of OpenRouter: *$/);
  screen.type(`\x1b[200~${right}\n\x1b[201~\r`);
  await screen.until(/Model of OpenRouter[\s\S]*claude-sonnet-5 +1000k · \$\d+ in, \$\d+ out/);
  screen.type('\r');
  await screen.until(/Make it the default model\?/);
  screen.type('\r');
  await screen.until(/Now using openrouter\/anthropic\/claude-sonnet-5/);
  screen.type('hello\r');
  await screen.until(/A real answer\./);
  screen.type('/exit\r');
  expect(await screen.exited).toBe(0);
  expect([screen.raw().includes(right), screen.raw().includes(wrong), server.asked]).toEqual([false, false, [right]]);
  expect([filesWith(at, right), filesWith(at, wrong)]).toEqual([['.agent/keys.json'], []]);
  expect(statSync(join(at.home, '.agent/keys.json')).mode & 0o777).toBe(0o600);

  const later = await agent(at, ['-p', 'again'], { env });
  expect([later.code, later.stdout]).toEqual([0, 'A real answer.\n']);
  const child = await agent(
    at,
    ['tools', 'call', 'bash', '{"command":"env; cat ~/.agent/keys.json"}', '--approval', 'never'],
    { env },
  );
  expect(child.stdout + child.stderr).not.toContain(right);
});

test('a key that is refused in a turn is asked for in place, and the turn goes on with the new one', async () => {
  const at = place();
  const server = await keyedServer();
  const env = { OPENROUTER_BASE_URL: server.url, OPENROUTER_API_KEY: wrong };
  const screen = openScreen(at, ['-m', 'openrouter/tiny', 'first message'], { env });
  await screen.until(/No auth credentials found[\s\S]*Key of OpenRouter:/);
  screen.type('my draft');
  await screen.until(/my draft/);
  await screen.until(/It stays hidden/);
  expect(screen.text()).not.toMatch(waiting);
  screen.type(`${right}\r`);
  await screen.until(/A real answer\.[\s\S]*❯ my draft/);
  expect(screen.text()).toMatch(/OPENROUTER_API_KEY is set in the environment, too/);
  expect([server.asked, screen.raw().includes(right)]).toEqual([[wrong, right], false]);
  expect(screen.text().split('first message')).toHaveLength(2);
  screen.type('\x15/login openrouter\r');
  await screen.until(/Use the key that is there/);
  screen.type('\r');
  await screen.until(/Model of OpenRouter[\s\S]*❯ tiny +32k/);
  screen.type('\x1b');
  await screen.until(/❯ *$/);
  screen.type('/exit\r');
  expect(await screen.exited).toBe(0);
});

test('where the provider is not reached the whole reason is said, and the key may be kept unchecked', async () => {
  const at = place();
  const screen = openScreen(at, [], { columns: 60, env: { OPENROUTER_BASE_URL: 'http://127.0.0.1:9/v1' } });
  await screen.until(/❯/);
  screen.type('/login openrouter\r');
  await screen.until(/Key of OpenRouter:/);
  screen.type(`${right}\r`);
  await screen.until(/refused the connection[\s\S]*base URL[\s\S]*could not be checked[\s\S]*Keep the key unchecked/);
  screen.type('\x1b[B\r');
  await screen.until(/Saved to [\s\S]*list is what[\s\S]*new sessions start with/);
  expect(filesWith(at, right)).toEqual(['.agent/keys.json']);
});

test('headless nobody is asked: a refused key ends the run', async () => {
  const at = place();
  const server = await keyedServer();
  const env = { OPENROUTER_BASE_URL: server.url, OPENROUTER_API_KEY: wrong };
  const ended = await agent(at, ['-p', '-m', 'openrouter/tiny', 'hello'], { env });
  expect([ended.code, ended.stdout, server.asked]).toEqual([4, '', [wrong]]);
  expect(existsSync(join(at.home, '.agent/keys.json'))).toBe(false);
});

test('ctrl-c at the question for a key ends the login as an interrupt does', async () => {
  const line = ['-c', '"$@"; echo ended with $?; read line', 'sh', process.execPath, binary, 'login', 'openrouter'];
  const screen = openProgram(place(), 'sh', line);
  await screen.until(/It stays hidden|not shown/);
  screen.type('\x03');
  await screen.until(/ended with 130/);
});

test('on the command line: login takes a key on standard input and checks it, logout forgets it', async () => {
  const at = place();
  const server = await keyedServer();
  const env = { OPENROUTER_BASE_URL: server.url };
  const refused = await agent(at, ['login', 'openrouter'], { env, stdin: `${wrong}\n` });
  expect([refused.code, refused.stderr]).toEqual([4, expect.stringContaining('rejected this key')]);
  const given = await agent(at, ['login', 'openrouter', '--model', 'tiny'], { env, stdin: `${right}\n` });
  expect([given.code, given.stdout]).toEqual([
    0,
    expect.stringMatching(/Key accepted[\s\S]*model = "openrouter\/tiny"\.\n$/),
  ]);
  const listed = await agent(at, ['providers'], { env });
  expect(listed.stdout).toMatch(/openrouter .*its key is saved/);
  expect((await agent(at, ['doctor'], { env })).stdout).toContain('kept: openrouter');
  expect((await agent(at, ['-p', 'hello'], { env })).stdout).toBe('A real answer.\n');
  expect((await agent(at, ['logout', 'openrouter'], { env })).stdout).toContain('Deleted the key of openrouter.');
  expect((await agent(at, ['-p', 'hello'], { env })).code).toBe(4);
  expect(filesWith(at, right)).toEqual([]);
});

test('a key that the keyring does not take ends the login with a failure, and no model is kept', async () => {
  const at = place();
  const server = await keyedServer();
  mkdirSync(join(at.home, '.agent'));
  writeFileSync(join(at.home, '.agent/config.json'), '{"key_store":"keyring"}');
  const env = { OPENROUTER_BASE_URL: server.url, PATH: at.work };
  const lost = await agent(at, ['login', 'openrouter', '--model', 'tiny'], { env, stdin: `${right}\n` });
  expect([lost.code, lost.stdout, lost.stderr]).toEqual([
    1,
    '',
    'agent: Not saved: there is no secret-tool here\n`agent config set key_store file` stores it in a file.\n',
  ]);
  expect(readFileSync(join(at.home, '.agent/config.json'), 'utf8')).toBe('{"key_store":"keyring"}');
});

test('another model steps in where the own one is down, and says so', async () => {
  const at = place();
  const server = await keyedServer();
  const down = createServer((_request, response) => response.writeHead(503).end('{}'));
  await new Promise<void>((resolve) => {
    down.listen(0, '127.0.0.1', resolve);
  });
  onTestFinished(() => void down.close());
  const env = {
    OPENROUTER_BASE_URL: server.url,
    OPENROUTER_API_KEY: right,
    OPENAI_BASE_URL: `http://127.0.0.1:${(down.address() as AddressInfo).port}/v1`,
    OPENAI_API_KEY: 'sk-openai-0123456789abcdef',
  };
  const args = ['-p', '-m', 'openai/big', '--set', 'http.max_retries=0'];
  const ended = await agent(at, [...args, '--fallback-model', 'openrouter/tiny', 'hello'], { env });
  expect([ended.code, ended.stdout]).toEqual([0, 'A real answer.\n']);
  expect(ended.stderr).toMatch(/openai\/big cannot answer: .*openrouter\/tiny continues this turn/);
  expect((await agent(at, [...args, 'hello'], { env })).code).toBe(1);
});

test('the offer of a first start takes no keys: who types has a prompt, and Enter alone accepts it', async () => {
  const at = place();
  const screen = openScreen(at);
  await screen.until(/Press Enter or type \/login[\s\S]*❯/);
  screen.type('\r');
  await screen.until(/Connect a model[\s\S]*Filter:/);
  screen.type('\x1b');
  await screen.until(/❯ *$/);
  screen.type('run ls -a\r');
  await screen.until(/ls -a succeeded/);
  screen.type('\r\r/exit\r');
  expect(await screen.exited).toBe(0);
  expect(screen.text().match(/Connect a model/g) ?? []).toEqual([]);
});

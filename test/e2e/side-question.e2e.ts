import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { agent, place, type Place } from './program.js';
import { type ModelServer, modelServer, type Turn } from './model-server.js';
import { openScreen, type Screen } from './terminal.js';

const waits = 'until [ -e go ]; do sleep 0.05; done; echo wait-is-over';

function lastMessage(body: Readonly<Record<string, unknown>>): string {
  return JSON.stringify(
    (body['messages'] as readonly unknown[] | undefined)?.at(-1) ?? (body['input'] as unknown[]).at(-1),
  );
}

/** Answers side questions, and plays a turn with a call that waits for the file `go`. */
function answers(body: Readonly<Record<string, unknown>>): Turn {
  if (lastMessage(body).includes('[A side question')) return { text: 'It waits for a file.' };
  const all = JSON.stringify(body);
  if (all.includes('NEXT-TASK')) return { text: 'Next answer.' };
  if (all.includes('wait-is-over')) return { text: 'All done.' };
  return { text: 'Working.', calls: [{ name: 'bash', arguments: { command: waits } }] };
}

function open(at: Place, server: ModelServer, args: readonly string[] = []): Screen {
  const env = { OPENAI_API_KEY: 'sk-of-a-test', OPENAI_BASE_URL: `${server.url}/v1` };
  return openScreen(at, args, { env });
}

interface Row {
  readonly kind: string;
  readonly content: string | null;
  readonly data_json: string | null;
}

function recorded(at: Place): readonly Row[] {
  const db = new Database(join(at.home, '.agent/agent.db'), { readonly: true });
  try {
    return db.prepare<[], Row>('SELECT kind, content, data_json FROM events ORDER BY id').all();
  } finally {
    db.close();
  }
}

/** The bodies of the requests that are no side questions. What names the session or the place differs by design. */
function mainBodies(server: ModelServer, at: Place): readonly string[] {
  return server.requests
    .filter(({ body }) => !lastMessage(body).includes('[A side question'))
    .map(({ body }) => {
      const { prompt_cache_key: _session, ...same } = body;
      return JSON.stringify(same).replaceAll(at.work, '/work');
    });
}

async function turn(withQuestion: boolean): Promise<{ at: Place; server: ModelServer; screen: Screen }> {
  const server = await modelServer(answers);
  const at = place();
  const screen = open(at, server);
  await screen.until(/Ask anything/);
  screen.type('do the task\r');
  await screen.until(/bash until/);
  if (withQuestion) {
    screen.type('/btw what does it wait for?\r');
    await screen.until(/Side question: what does it wait for\?[^]*It waits for a file\.[^]*m adds it/);
    screen.type('\x1b');
    await screen.until(/❯$/);
    expect(screen.text()).not.toContain('It waits for a file.');
  }
  writeFileSync(join(at.work, 'go'), '');
  await screen.until(/All done\.[^]*❯/);
  return { at, server, screen };
}

test('a side question beside a running turn is answered in a box and changes no request of the turn', async () => {
  const without = await turn(false);
  const { at, server, screen } = await turn(true);
  expect(server.requests).toHaveLength(3);
  expect(mainBodies(server, at)).toEqual(mainBodies(without.server, without.at));
  screen.type('/btw\r');
  await screen.until(/Side question: what does it wait for\?[^]*m adds it/);
  screen.type('m');
  await screen.until(/The side question is part of the conversation now\./);
  screen.type('NEXT-TASK\r');
  await screen.until(/Next answer\./);
  const merged = mainBodies(server, at).at(-1) ?? '';
  expect(merged).toMatch(
    /The user asked you a side question[^"]*Question: what does it wait for\?[^"]*Answer: It waits for a file\./,
  );
  screen.type('\x04');
  await screen.exited;
  const found = await agent(at, ['search', 'waits', 'file', 'kind:side']);
  expect(found.stdout).toContain('It waits for a file.');
  const listed = JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as readonly { id: string }[];
  for (const command of [['export'], ['replay', '--instant']]) {
    const { stdout } = await agent(at, [...command, listed[0]?.id ?? '']);
    expect(stdout).toMatch(/ide question[^]*what does it wait for\?[^]*It waits for a file\./);
  }
});

test('kill -9 while a side question is answered, and after it: the session resumes, and what was answered is there', async () => {
  let hasQuestion = false;
  const server = await modelServer((body) => {
    if (!lastMessage(body).includes('[A side question')) return answers(body);
    const isSecond = hasQuestion;
    hasQuestion = true;
    return { text: 'It waits for a file.', ...(isSecond ? { delayMs: 20_000 } : {}) };
  });
  const at = place();
  const screen = open(at, server);
  await screen.until(/Ask anything/);
  screen.type('do the task\r');
  await screen.until(/bash until/);
  screen.type('/btw one?\r');
  await screen.until(/It waits for a file\.[^]*m adds it/);
  screen.type('\x1b');
  await screen.until(/❯$/);
  screen.type('/btw two?\r');
  await screen.until(/Side question: two\?[^]*Thinking/);
  process.kill(screen.pty.pid, 'SIGKILL');
  await screen.exited;
  expect(
    recorded(at)
      .filter(({ kind }) => kind === 'side_question')
      .map(({ content }) => content),
  ).toEqual(['one?']);
  writeFileSync(join(at.work, 'go'), '');
  const again = open(at, server, ['-c']);
  await again.until(/do the task[^]*❯/);
  again.type('/btw\r');
  await again.until(/Side question: one\?[^]*It waits for a file\.[^]*m adds it/);
  again.type('\x1b');
  await again.until(/❯$/);
  again.type('NEXT-TASK\r');
  await again.until(/Next answer\./);
  expect(mainBodies(server, at).at(-1)).not.toMatch(/one\?|two\?|side question/);
});

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test as anyTest } from 'vitest';
import type { Place } from '../e2e/program.js';
import { serverOfFile } from '../features/team-store/server.js';
import { agent, place, script } from './inside.js';
import { bash, done, edit, git, repository, turn } from './provenance-place.js';

const { installed, server } = serverOfFile(3);
const test = installed ? anyTest : anyTest.skip;

type Environment = Readonly<Record<string, string>>;

interface Line {
  readonly text: string;
  readonly kind: string;
  readonly session_id: string | null;
  readonly prompt: string | null;
}

async function blamed(at: Place, env: Environment, file: string): Promise<readonly Line[]> {
  const ran = await agent(at, ['blame', file, '--json'], { env });
  expect(ran).toMatchObject({ code: 0, stderr: '' });
  return (JSON.parse(ran.stdout) as { readonly lines: readonly Line[] }).lines;
}

const said = (lines: readonly Line[]): readonly string[] =>
  lines.map(({ text, kind, prompt }) => `${kind} ${text}${prompt === null ? '' : ` (${prompt})`}`);

/** Machine A, on which a session of Alice changed a file that is committed since, and what machines of others are given
 * to share her sessions. */
async function machines(): Promise<{ readonly a: Place; readonly env: (role: string) => Environment }> {
  const database = await server().database();
  const env = (role: string): Environment => ({
    AGENT_STORE_URL: server().url(database, role),
    AGENT_STORE_TEAM: 'crew',
  });
  const a = repository();
  await turn(a, 'Shout', edit('a.txt', 'two', 'TWO'), bash('echo four >> a.txt'));
  git(a, 'commit', '-qam', 'Second commit');
  expect(await agent(a, ['db', 'push'], { env: env('alice') })).toMatchObject({ code: 0 });
  return { a, env };
}

/** Another machine with a clone of the repository of A. */
function cloneOf(a: Place): Place {
  const b = place();
  git(b, 'clone', '-q', a.work, '.');
  return b;
}

const whole = ['git one', 'edit TWO (Shout)', 'git three', 'command four (Shout)'];

test('a machine that pulled the sessions of another one blames its calls, in a clone at another path', async () => {
  const { a, env } = await machines();
  const b = cloneOf(a);
  expect(said(await blamed(b, {}, 'a.txt'))).toEqual(['git one', 'git TWO', 'git three', 'git four']);
  expect(await agent(b, ['db', 'pull'], { env: env('bob') })).toMatchObject({ code: 0 });
  expect(said(await blamed(b, {}, 'a.txt'))).toEqual(whole);
  // A session of this machine continues the file, and a person changes it.
  await turn(b, 'On B', edit('a.txt', 'three', 'THREE'));
  writeFileSync(join(b.work, 'a.txt'), readFileSync(join(b.work, 'a.txt'), 'utf8').replace('one', 'ONE'));
  expect(said(await blamed(b, {}, 'a.txt'))).toEqual([
    'outside ONE',
    'edit TWO (Shout)',
    'edit THREE (On B)',
    'command four (Shout)',
  ]);
  // The sessions of B go to A, whose file comes by git.
  git(b, 'commit', '-qam', 'Third commit');
  await agent(b, ['db', 'push'], { env: env('bob') });
  git(a, 'pull', '-q', b.work, 'HEAD');
  await agent(a, ['db', 'pull'], { env: env('alice') });
  expect(said(await blamed(a, {}, 'a.txt'))).toEqual([
    'outside ONE',
    'edit TWO (Shout)',
    'edit THREE (On B)',
    'command four (Shout)',
  ]);
});

test('why names a command line that goes to the call of the other machine', async () => {
  const { a, env } = await machines();
  const b = cloneOf(a);
  await agent(b, ['db', 'pull'], { env: env('bob') });
  const { stdout } = await agent(b, ['why', 'a.txt:2', '--json']);
  const why = JSON.parse(stdout) as { readonly prompt: string; readonly resume: string };
  expect(why).toMatchObject({ prompt: 'Shout', resume: expect.stringMatching(/^agent -r [0-9A-Z]{26} /) as string });
  const there = await agent(b, [
    ...why.resume.split(' ').slice(1),
    '-p',
    '-m',
    script(b, [done, { text: 'Second.' }]),
    'on',
  ]);
  expect([there.code, there.stdout]).toEqual([0, 'Second.\n']);
});

test('a machine without a disk blames by what lies on the server', async () => {
  const { a, env } = await machines();
  const b = cloneOf(a);
  const remote = { ...env('bob'), AGENT_STORE_MODE: 'remote' };
  expect(said(await blamed(b, remote, 'a.txt'))).toEqual(whole);
  // Carol is not in the team.
  expect(said(await blamed(b, { ...remote, ...env('carol') }, 'a.txt'))).toEqual([
    'git one',
    'git TWO',
    'git three',
    'git four',
  ]);
});

import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { importPrograms } from '../../src/kernel/console/importer.js';
import { agent, binary, place, type Place } from '../e2e/program.js';

const fixtures = fileURLToPath(new URL('../../fixtures/brought/import', import.meta.url));

const skills = 40;

function fullPlace(): Place {
  const at = place();
  for (const program of importPrograms) cpSync(join(fixtures, program), dirname(at.home), { recursive: true });
  for (let number = 0; number < skills; number++) {
    const folder = join(at.home, '.codex/skills', `skill-${number}`);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'SKILL.md'), `---\nname: skill-${number}\ndescription: One of many.\n---\n\nText.\n`);
    for (let file = 0; file < 20; file++) writeFileSync(join(folder, `${file}.txt`), 'x'.repeat(10_000));
    const session = `6f1c1c1e-0000-4000-8000-${String(number).padStart(12, '0')}`;
    const line = { isSidechain: false, cwd: at.work, sessionId: session, version: '2.1.197', type: 'user' };
    const said = { timestamp: '2026-11-20T10:00:00.000Z', uuid: 'u0', parentUuid: null };
    const message = { role: 'user', content: `request ${number}` };
    const file = join(at.home, '.claude/projects/-work', `${session}.jsonl`);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, `${JSON.stringify({ ...line, ...said, message })}\n`);
  }
  return at;
}

/** The files of the user. Those that are replaced as a whole may leave a draft behind, which nothing reads. */
function copiesOf({ home }: Place): Readonly<Record<string, string>> {
  const folder = join(home, '.agent');
  return Object.fromEntries(
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter(
        (name) =>
          !/^(?:agent\.db|agent\.log)|(?:^|\/)\.(?:config|mcp)-\w+\.tmp$/.test(name) &&
          statSync(join(folder, name)).isFile(),
      )
      .toSorted()
      .map((name) => [name, readFileSync(join(folder, name), 'utf8').replaceAll(home, '')]),
  );
}

/** Starts an import and kills it once so many files are there. */
async function killedAfter(at: Place, files: number): Promise<boolean> {
  const child = spawn(process.execPath, [binary, 'import', '--yes'], { cwd: at.work, env: at.env, stdio: 'ignore' });
  const ended = new Promise<NodeJS.Signals | null>((resolve) => {
    child.on('close', (_code, signal) => {
      resolve(signal);
    });
  });
  const folder = join(at.home, '.agent');
  const count = (): number => {
    try {
      return readdirSync(folder, { recursive: true }).length;
    } catch {
      return 0; // not there yet, or it changes just now
    }
  };
  const timer = setInterval(() => {
    if (count() >= files) child.kill('SIGKILL');
  }, 1);
  const signal = await ended;
  clearInterval(timer);
  return signal === 'SIGKILL';
}

async function sessionsOf(at: Place): Promise<readonly string[]> {
  const { stdout } = await agent(at, ['sessions', 'list', '--json', '--all']);
  return (JSON.parse(stdout) as readonly { readonly id: string }[]).map(({ id }) => id).toSorted();
}

test('an import that is killed at any moment and repeated copies everything once', { timeout: 600_000 }, async () => {
  const whole = fullPlace();
  expect((await agent(whole, ['import', '--yes'])).code).toBe(0);
  const expected = copiesOf(whole);
  let kills = 0;
  for (const files of [1, 3, 10, 60, 300, 700, 850, 870]) {
    const at = fullPlace();
    if (await killedAfter(at, files)) kills++;
    expect([files, (await agent(at, ['import', '--yes'])).code]).toEqual([files, 0]);
    expect([files, copiesOf(at)]).toEqual([files, expected]);
    expect([files, (await sessionsOf(at)).length]).toEqual([files, skills]);
  }
  expect(kills).toBeGreaterThan(4);
});

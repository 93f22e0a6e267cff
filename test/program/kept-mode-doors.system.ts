import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createAgent } from '../../src/frontends/library/library.js';
import { agent, place, repl, script } from './inside.js';

type Place = ReturnType<typeof place>;

/** Runs only where the file of the home directory is seen, so in no sandbox, and writes into the working directory. */
const turnsOf = (at: Place) => [
  { text: 'Begun.' },
  { calls: [{ name: 'bash', arguments: { command: `test -e ${join(at.home, 'marker')} && echo made > new.txt` } }] },
  { text: 'Tried.' },
];

const hasSandbox = existsSync('/usr/bin/bwrap');

interface Mode {
  readonly name: string;
  /** Begins a session in this mode. */
  readonly begin: (at: Place, model: string) => Promise<unknown>;
  readonly notice: RegExp;
}

const withOptions = (options: readonly string[], notice: RegExp): Mode => ({
  name: options.join(' '),
  begin: (at, model) => agent(at, ['-p', '-m', model, ...options, 'begin']),
  notice,
});

const modes: readonly Mode[] = [
  withOptions(['--approval', 'mutating'], /Approval mode mutating, as before in this session/),
  withOptions(['--approval', 'always'], /Approval mode always, as before in this session/),
  {
    name: 'plan mode',
    begin: (at, model) =>
      repl(
        at,
        ['-m', model],
        [
          ['begin', 'Begun.'],
          ['/plan', 'Plan mode'],
        ],
      ),
    notice: /Plan mode is on, as before in this session/,
  },
  ...(hasSandbox
    ? [
        withOptions(['--sandbox', 'read-only'], /Sandbox read-only, as before in this session/),
        withOptions(['--sandbox', 'workspace'], /Sandbox workspace, as before in this session/),
      ]
    : []),
];

/** Resumes a session and has it run its next turn. Returns what the user, or the other program, is told. */
type Door = (at: Place, model: string, id: string) => Promise<string>;

/** A question of the call stays unanswered there: Esc. */
const inRepl = async (at: Place, args: readonly string[], first: readonly [string, string | RegExp][]) => {
  const steps = [...first, ['go on', /Tried\.|Run this command\?|Allow/]] as const;
  return (await repl(at, args, steps)).stdout;
};

const doors: Readonly<Record<string, Door>> = {
  '-c': async (at, model) => (await agent(at, ['-p', '-m', model, '-c', 'go on'])).stderr,
  '-r': async (at, model, id) => (await agent(at, ['-p', '-m', model, '-r', id, 'go on'])).stderr,
  '-c --fork': async (at, model) => (await agent(at, ['-p', '-m', model, '-c', '--fork', 'go on'])).stderr,
  'the REPL with -c': (at, model) => inRepl(at, ['-m', model, '-c'], []),
  '/sessions': (at, model, id) => inRepl(at, ['-m', model], [[`/sessions ${id}`, /as before in this session/]]),
  '/resume': (at, model, id) => inRepl(at, ['-m', model], [[`/resume ${id}`, /as before in this session/]]),
  'lines of another program': async (at, model) => {
    const formats = ['--input-format', 'stream-json', '--output-format', 'stream-json'];
    const stdin = `${JSON.stringify({ type: 'user', message: { role: 'user', content: 'go on' } })}\n`;
    return (await agent(at, ['-p', '-m', model, '-c', ...formats], { stdin })).stdout;
  },
  'the library': async (at, model, id) => {
    process.env['AGENT_HOME'] = at.env['AGENT_HOME'];
    const store = join(at.home, '.agent', 'agent.db');
    const program = await createAgent({ cwd: at.work, model, store, builtins: ['exec'] });
    const session = program.createSession({ resume: id });
    const told: string[] = [];
    for await (const event of session.run('go on')) if (event.type === 'notice') told.push(event.message);
    await session.close();
    await program.close();
    return told.join('\n');
  },
};

test.each(
  Object.entries(doors).flatMap(([door, resume]) => modes.map((mode) => [door, mode.name, resume, mode] as const)),
)('%s: a session with %s is not looser when it is resumed', async (_door, _mode, resume, { begin, notice }) => {
  const at = place();
  writeFileSync(join(at.home, 'marker'), '');
  const model = script(at, turnsOf(at));
  await begin(at, model);
  const { stdout } = await agent(at, ['sessions', 'list', '--json']);
  const told = await resume(at, model, (JSON.parse(stdout) as { id: string }[])[0]?.id ?? '');
  expect([told.match(notice)?.[0], existsSync(join(at.work, 'new.txt'))]).toEqual([expect.any(String), false]);
});

test.skipIf(!hasSandbox)('--sandbox wins over the sandbox of the session, and what it loosens is named', async () => {
  const at = place();
  writeFileSync(join(at.home, 'marker'), '');
  const model = script(at, turnsOf(at));
  await agent(at, ['-p', '-m', model, '--sandbox', 'workspace', 'begin']);
  const { stderr } = await agent(at, ['-p', '-m', model, '-c', '--sandbox', 'off', 'go on']);
  expect([stderr, existsSync(join(at.work, 'new.txt'))]).toEqual([
    expect.stringContaining('The sandbox is now off; this session had workspace.'),
    true,
  ]);
});

test.skipIf(!hasSandbox)('a session whose sandbox cannot be opened is not resumed without it', async () => {
  const at = place();
  writeFileSync(join(at.home, 'marker'), '');
  const model = script(at, turnsOf(at));
  await agent(at, ['-p', '-m', model, '--sandbox', 'workspace', 'begin']);
  const elsewhere = ['-p', '-C', at.home, '-m', model, '-r', '01'];
  const refused = await agent(at, [...elsewhere, 'go on']);
  expect([refused.code, refused.stdout]).toEqual([2, '']);
  expect(refused.stderr).toMatch(
    /^agent: this session used the sandbox workspace, which is not available here: .*\n.*--sandbox off/,
  );
  // The lease is given back.
  rmSync(join(at.work, 'new.txt'), { force: true });
  expect(await agent(at, ['-p', '-m', model, '-c', 'go on'])).toMatchObject({ code: 0 });
});

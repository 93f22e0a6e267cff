import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { script } from './program.js';
import { agentOnMac, mac, missing, startOnMac, type Mac } from './simulated-mac.js';
import { openProgram } from './terminal.js';

if (missing !== '') console.log(missing);

const bash = (command: string, more: object = {}) => ({ calls: [{ name: 'bash', arguments: { command, ...more } }] });
const call = (name: string, args: object) => ({ calls: [{ name, arguments: args }] });
const never = ['--approval', 'never'];

/** Command lines of live processes that hold `text`. */
function holding(text: string): readonly string[] {
  return readdirSync('/proc').flatMap((id) => {
    try {
      const line = readFileSync(`/proc/${id}/cmdline`, 'latin1').replaceAll('\0', ' ').trim();
      return /^\d+$/.test(id) && id !== String(process.pid) && line.includes(text) ? [line] : [];
    } catch {
      return []; // ended meanwhile
    }
  });
}

function results(at: Mac): readonly Record<string, unknown>[] {
  const db = new Database(join(at.home, '.agent/agent.db'), { readonly: true });
  const found = db.prepare("select data_json from events where kind = 'tool_result' order by rowid").all();
  db.close();
  return found.map((row) => {
    const { output } = JSON.parse((row as { readonly data_json: string }).data_json) as { readonly output: string };
    return JSON.parse(output) as Record<string, unknown>;
  });
}

const unique = (): string => String(process.hrtime.bigint());

/** Starts a process in a session of its own, as daemons do. */
function detached(program: string, ...args: readonly string[]): string {
  const options = '{ detached: true, stdio: "ignore" }';
  const start = `require("node:child_process").spawn("${program}", ${JSON.stringify(args)}, ${options}).unref()`;
  return `${process.execPath} -e '${start}'`;
}

/** The same, and waits for its end. */
function withChild(program: string, ...args: readonly string[]): string {
  return detached(program, ...args).replace('.unref()', '');
}

describe.skipIf(missing !== '')('on a simulated Mac', () => {
  test('the simulation hides what macOS does not have', async () => {
    const at = mac();
    const commands = ['ls /proc | wc -l', 'command -v bwrap setsid', '/usr/bin/false', 'ps -axo pid=,ppid= | head -1'];
    const model = script(at, [...commands.map((command) => bash(command)), { text: 'done' }]);
    expect(await agentOnMac(at, ['-p', ...never, '-m', model, 'go'])).toMatchObject({ code: 0, stdout: 'done\n' });
    expect(results(at).map(({ output }) => output)).toEqual(['0\n', '', expect.stringContaining('denied'), ',ppid=\n']);
  });

  test('kill -9 of the program ends its command with everything that it started', async () => {
    const at = mac();
    const mark = `.${unique()}`;
    // The environment of `sleep` is not shown, so its parent must lead to it; that of a program of the user is.
    const command = [
      `sleep 600${mark} & env -i sleep 600${mark} &`,
      `${withChild('/usr/bin/sleep', `600${mark}`)} & ${detached(at.ownSleep, `601${mark}`)};`,
      `touch begun; trap "" TERM; while :; do sleep 600${mark}; done`,
    ].join(' ');
    const child = startOnMac(at, ['-p', ...never, '-m', script(at, [bash(command), { text: 'done' }]), 'go']);
    await expect
      .poll(() => holding(mark).filter((line) => !line.includes('begun')).length, { timeout: 60_000 })
      .toBe(6);
    child.kill('SIGKILL');
    await expect.poll(() => holding(mark), { timeout: 60_000 }).toEqual([]);
  });

  test('a time limit ends what has left the group of the command', async () => {
    const at = mac();
    const mark = `.${unique()}`;
    // The parent stays, so that it leads to what the system does not show the environment of.
    const parent = withChild('/usr/bin/sleep', `600${mark}`);
    const command = `${detached(at.ownSleep, `600${mark}`)}; ${parent} & sleep 600${mark}`;
    const model = script(at, [bash(command, { timeout_seconds: 5 }), { text: 'done' }]);
    expect(await agentOnMac(at, ['-p', ...never, '-m', model, 'go'])).toMatchObject({ code: 0, stdout: 'done\n' });
    expect(holding(mark)).toEqual([]);
    expect(String(results(at)[0]?.['error'])).toContain('stopped with its child processes (');
  });

  test('the end of the program ends a daemon that a command has left behind', async () => {
    const at = mac();
    const mark = `.${unique()}`;
    const model = script(at, [bash(detached(at.ownSleep, `600${mark}`)), { text: 'done' }]);
    expect(await agentOnMac(at, ['-p', ...never, '-m', model, 'go'])).toMatchObject({ code: 0, stdout: 'done\n' });
    expect(holding(mark)).toEqual([]);
  });

  test('the sandbox is that of macOS, and nothing runs where it is not there', async () => {
    const at = mac();
    const { code, stderr } = await agentOnMac(at, ['-p', '--safe', '-m', script(at, [{ text: 'x' }]), 'go']);
    expect([code, stderr]).toEqual([2, expect.stringContaining('/usr/bin/sandbox-exec: ENOENT')]);
  });

  test('tools, undo, drafts and import work', async () => {
    const at = mac({ 'a.txt': 'one\n' });
    const turns = [
      call('file_read', { path: 'a.txt' }),
      call('file_edit', { path: 'a.txt', old_string: 'one', new_string: 'two' }),
      call('file_write', { path: 'new/b.txt', content: 'b\n' }),
      call('grep', { pattern: 'two' }),
      call('glob', { pattern: '**/*.txt' }),
      bash('rm a.txt; echo changed > new/b.txt'),
      { text: 'done' },
    ];
    expect(await agentOnMac(at, ['-p', ...never, '-m', script(at, turns), 'go'])).toMatchObject({ code: 0 });
    expect(results(at).filter(({ error }) => error !== undefined)).toEqual([]);
    expect(await agentOnMac(at, ['undo', '--yes'])).toMatchObject({ code: 0 });
    expect(readFileSync(join(at.work, 'a.txt'), 'utf8')).toBe('two\n');
    expect(readFileSync(join(at.work, 'new/b.txt'), 'utf8')).toBe('b\n');
    expect(await agentOnMac(at, ['doctor'])).toMatchObject({ code: 0 });
    expect(await agentOnMac(at, ['import'])).toMatchObject({ code: 0 });
  });

  test('a draft of a REPL that was killed is there again', async () => {
    const at = mac();
    const first = openProgram(at, '/usr/bin/unshare', at.command([]));
    await first.until(/\/help/);
    first.type('half a thought');
    await first.until(/half a thought/);
    const files = (): readonly string[] => readdirSync(join(at.home, '.agent'), { recursive: true, encoding: 'utf8' });
    const kept = (): readonly string[] => files().filter((name) => /\.drafts\/[^/]*[^w]$/.test(name));
    await expect.poll(kept, { timeout: 20_000 }).toHaveLength(1);
    first.pty.kill('SIGKILL');
    await first.exited;
    const again = openProgram(at, '/usr/bin/unshare', at.command([]));
    await again.until(/half a thought/);
  });

  test('a holder of a lease counts by its start, its boot and its machine, not by the name of the host', async () => {
    const at = mac();
    const texts = Array.from({ length: 6 }, () => ({ text: 'on' }));
    const model = script(at, [{ text: 'first' }, bash('touch held; sleep 600'), ...texts]);
    expect(await agentOnMac(at, ['-p', '-m', model, 'go'])).toMatchObject({ code: 0 });
    const holder = startOnMac(at, ['-p', '-c', ...never, '-m', model, 'more']);
    await expect.poll(() => readdirSync(at.work), { timeout: 60_000 }).toContain('held');
    const db = new Database(join(at.home, '.agent/agent.db'));
    const lease = db.prepare('select * from leases').get() as Record<string, string | number>;
    expect(lease).toMatchObject({
      machine: '0E2A9F3C-5B1D-4C77-8E1B-3A6D5C4B2A10 mac:5B2F1C60-7D3A-5E0C-9A41-0C1D2E3F4A5B',
      started: expect.stringMatching(/^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}$/) as string,
    });
    const goOn = ['-p', '-c', '-m', model, 'on'];
    // The name of a Mac changes with its network; its time zone does with its place.
    const elsewhere = { SIMULATED_HOST: 'elsewhere.local', TZ: 'Asia/Tokyo' };
    expect(await agentOnMac(at, goOn, elsewhere)).toMatchObject({ code: 7 });
    holder.kill('SIGKILL');
    const forms: readonly (readonly [name: string, change: Record<string, string | number>])[] = [
      ['the holder is dead, and the name of the host has changed', {}],
      ['another process has its number', { pid: process.pid }],
    ];
    const insert = db.prepare(
      'insert or replace into leases (session_id, token, pid, host, machine, started, since) values (@session_id, @token, @pid, @host, @machine, @started, @since)',
    );
    for (const [name, change] of forms) {
      insert.run({ ...lease, since: Date.now(), ...change });
      expect([name, (await agentOnMac(at, goOn, elsewhere)).code]).toEqual([name, 0]);
    }
    insert.run({ ...lease, pid: process.pid, since: Date.now() });
    at.reboot('99999999-5B1D-4C77-8E1B-3A6D5C4B2A10');
    expect(await agentOnMac(at, goOn, elsewhere)).toMatchObject({ code: 0 });
    db.close();
  });
});

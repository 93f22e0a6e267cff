import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { createOwnStatus, type StatusReport } from '../../../src/frontends/repl/status-command.js';
import { createProcessRunner } from '../../../src/kernel/tools/process/runner.js';
import { statusLine } from '../../../src/ui/components/status-line.js';
import { createTheme } from '../../../src/kernel/console/theme.js';
import { emptyView } from '../../../src/ui/view.js';

const cwd = mkdtempSync(join(tmpdir(), 'agent-status-'));
const processes = createProcessRunner({ marker: { name: '_AGENT_RUN', value: 'status' } });
afterAll(() => {
  rmSync(cwd, { recursive: true, force: true });
});

const report: StatusReport = {
  session_id: '1',
  model: 'openai/gpt-5.2',
  cwd,
  branch: null,
  approval: 'dangerous',
  sandbox: 'off',
  busy: false,
  cost_usd: 0.5,
  tokens: { input: 1, output: 2, cache_read: 3, cache_write: 4 },
  context: { used: 6, window: 100, percent: 6 },
};

/** A schedule turned by hand, and a wait for the next change. */
function open(command: readonly string[]) {
  let due: (() => void)[] = [];
  let changed = (): void => undefined;
  const problems: string[] = [];
  const status = createOwnStatus({
    settings: {
      cwd,
      env: { ...process.env, OPENAI_API_KEY: 'sk-none' },
      config: { ui: { statusCommand: command }, provider: { custom: {} }, web: { api: [] }, store: {} } as never,
    },
    processes,
    schedule: (callback) => {
      due.push(callback);
      return () => undefined;
    },
    onChange: () => {
      changed();
    },
    onProblem: (problem) => problems.push(problem),
  });
  const run = async (): Promise<void> => {
    const done = new Promise<void>((resolve) => {
      changed = resolve;
    });
    const now = due;
    due = [];
    for (const callback of now) callback();
    await done;
    await new Promise(setImmediate);
  };
  /** Lets the second after a run pass. */
  const pass = (): number => {
    const now = due;
    due = [];
    for (const callback of now) callback();
    return due.length;
  };
  return { status, problems, run, pass };
}

test('the first line of the program is the status line; it is told the facts, and no key, and runs once for each change', async () => {
  const { status, problems, run, pass } = open([
    'sh',
    '-c',
    'read line; printf "%s\\033[31m %s\\t|\\nsecond\\n" "$line" "${OPENAI_API_KEY:-no key}"',
  ]);
  expect(status.line(report, 1)).toBe(null);
  await run();
  expect(status.line(report, 1)).toBe(`${JSON.stringify(report)} no key |`);
  expect(pass()).toBe(0);
  status.line({ ...report, busy: true }, 1);
  await run();
  expect(status.line({ ...report, busy: true }, 1)).toContain('"busy":true');
  expect(problems).toEqual([]);
});

test('a program that fails is told of once, and is not started a fourth time', async () => {
  const { status, problems, run, pass } = open(['sh', '-c', 'echo broken >&2; exit 3']);
  for (const events of [1, 2, 3]) {
    expect(status.line(report, events)).toBe(null);
    await run();
    pass();
  }
  status.line(report, 4);
  expect(pass()).toBe(0);
  expect(problems).toEqual([
    'ui.status_command: sh ended with exit code 3: broken. Using the built-in status line until it works.',
  ]);
});

test('the line of the program stands behind what runs, as far as it fits', () => {
  const theme = createTheme({ unicode: true, colors: 0, theme: 'dark' });
  const own = { interruptKey: 'Esc', own: 'mine: a long line of mine' };
  const facts = { model: 'm', approval: 'never', sandbox: 'off', directory: '~', ...own };
  const busy = { ...emptyView, busy: true };
  const line = statusLine(facts, busy, { nowMs: 3_000, busySinceMs: 0, hint: null }, theme, 45);
  expect(line).toBe('working 3s, Esc stops · mine: a long lin…');
});

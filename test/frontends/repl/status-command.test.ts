import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { Event } from '../../../src/kernel/core/event.js';
import { createOwnStatus } from '../../../src/frontends/repl/status-command.js';
import {
  createLineCount,
  type StatusDetails,
  statusInput,
  type StatusMoment,
} from '../../../src/frontends/repl/status-input.js';
import { createProcessRunner } from '../../../src/kernel/tools/process/runner.js';
import { statusLine } from '../../../src/ui/components/status-line.js';
import { createTheme } from '../../../src/kernel/console/theme.js';
import { emptyView } from '../../../src/ui/view.js';

const cwd = mkdtempSync(join(tmpdir(), 'agent-status-'));
const processes = createProcessRunner({ marker: { name: '_AGENT_RUN', value: 'status' } });
afterAll(() => {
  rmSync(cwd, { recursive: true, force: true });
});

const moment: StatusMoment = {
  sessionId: '1',
  title: 'Parser',
  provider: 'openrouter',
  model: 'anthropic/claude-sonnet-5',
  cwd: '/home/me/thing',
  addedFolders: ['/home/me/other'],
  branch: 'main',
  approval: 'dangerous',
  sandbox: 'off',
  busy: false,
  effort: 'high',
  vimMode: 'normal',
  costUsd: 0.5,
  costKnown: true,
  tokens: { input: 1, output: 2, cache_read: 3, cache_write: 4 },
  contextTokens: 84_500,
  contextWindow: 200_000,
};

const usage = (more: object = {}): Event => ({
  seq: 2,
  kind: 'usage',
  content: null,
  createdAt: 1,
  data: {
    response_id: 'r',
    provider: 'p',
    model: 'm',
    input_tokens: 4000,
    output_tokens: 500,
    cache_read_tokens: 76_000,
    cache_write_tokens: 4000,
    cost_usd: 0.1,
    ...more,
  },
});

const details: StatusDetails = {
  version: '0.1.0',
  events: [usage(), usage({ input_tokens: 9, purpose: 'title' })],
  lines: { added: 12, removed: 3 },
  durationMs: 3_725_000.4,
  apiDurationMs: 120_000,
  transcript: '/tmp/t.jsonl',
  outputStyle: 'learning',
};
const input = statusInput(moment, details);

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

test('the first line of the program is the status line; it reads the facts, and no key, and runs once for each change', async () => {
  const { status, problems, run, pass } = open([
    'sh',
    '-c',
    'read line; printf "%s\\033[31m %s\\t|\\nsecond\\n" "$line" "${OPENAI_API_KEY:-no key}"',
  ]);
  const made: string[] = [];
  const line = (key: string): string | null =>
    status.line(key, () => {
      made.push(key);
      return { key };
    });
  expect(line('one')).toBe(null);
  await run();
  expect(line('one')).toBe('{"key":"one"} no key |');
  expect(pass()).toBe(0);
  line('two');
  await run();
  expect(line('two')).toBe('{"key":"two"} no key |');
  expect([made, problems]).toEqual([['one', 'two'], []]);
});

test('a program that fails is told of once, and is not started a fourth time', async () => {
  const { status, problems, run, pass } = open(['sh', '-c', 'echo broken >&2; exit 3']);
  for (const events of [1, 2, 3]) {
    expect(status.line(String(events), () => ({}))).toBe(null);
    await run();
    pass();
  }
  status.line('4', () => ({}));
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

test('the input has the fields of Claude Code, and ours beside them', () => {
  expect(input).toEqual({
    hook_event_name: 'Status',
    session_id: '1',
    session_name: 'Parser',
    transcript_path: '/tmp/t.jsonl',
    cwd: '/home/me/thing',
    model: { id: 'anthropic/claude-sonnet-5', display_name: 'claude-sonnet-5', provider: 'openrouter' },
    workspace: { current_dir: '/home/me/thing', project_dir: '/home/me/thing', added_dirs: ['/home/me/other'] },
    version: '0.1.0',
    output_style: { name: 'learning' },
    cost: {
      total_cost_usd: 0.5,
      total_duration_ms: 3_725_000,
      total_api_duration_ms: 120_000,
      total_lines_added: 12,
      total_lines_removed: 3,
    },
    context_window: {
      total_input_tokens: 84_000,
      total_output_tokens: 500,
      context_window_size: 200_000,
      current_usage: {
        input_tokens: 4000,
        output_tokens: 500,
        cache_creation_input_tokens: 4000,
        cache_read_input_tokens: 76_000,
      },
      used_percentage: 42,
      remaining_percentage: 58,
    },
    exceeds_200k_tokens: false,
    effort: { level: 'high' },
    thinking: { enabled: true },
    vim: { mode: 'NORMAL' },
    branch: 'main',
    approval: 'dangerous',
    sandbox: 'off',
    busy: false,
    cost_usd: 0.5,
    tokens: { input: 1, output: 2, cache_read: 3, cache_write: 4 },
    context: { used: 84_500, window: 200_000, percent: 42 },
  });
});

test('what is not known is null or missing, as there', () => {
  const early = { ...moment, title: null, effort: null, vimMode: null, costKnown: false, contextWindow: null };
  const found = statusInput(early, { ...details, events: [] });
  expect(found).toMatchObject({
    context_window: { total_input_tokens: 0, context_window_size: 200_000, current_usage: null, used_percentage: null },
    exceeds_200k_tokens: false,
    thinking: { enabled: false },
    cost: { total_cost_usd: 0.5 },
    cost_usd: null,
  });
  expect(['session_name', 'effort', 'vim'].filter((key) => key in found)).toEqual([]);
  const long = statusInput(moment, { ...details, events: [usage({ cache_read_tokens: 240_000 })] });
  expect(long).toMatchObject({ exceeds_200k_tokens: true, context_window: { used_percentage: 100 } });
});

test('the lines that calls change are counted once, for each session', () => {
  const edit = (seq: number, diff?: string): Event => ({
    seq,
    kind: 'tool_result',
    content: null,
    createdAt: 1,
    data: {
      tool_call_id: `c${seq}`,
      name: 'file_edit',
      output: '{"output":""}',
      success: true,
      ...(diff ? { diff } : {}),
    },
  });
  const count = createLineCount();
  const first = edit(1, '--- a\n+++ b\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n++d\n');
  expect(count('one', [first])).toEqual({ added: 2, removed: 1 });
  expect(count('one', [first, edit(2), edit(3, '+e\n')])).toEqual({ added: 3, removed: 1 });
  expect(count('one', [first, edit(2), edit(3, '+e\n')])).toEqual({ added: 3, removed: 1 });
  expect(count('two', [edit(1, '-f\n')])).toEqual({ added: 0, removed: 1 });
});

/** Status lines in the forms that people publish. */
const scripts: readonly (readonly [name: string, file: string, text: string, shows: string])[] = [
  [
    'bash with jq, a variable for each field',
    'fields.sh',
    `#!/bin/bash
input=$(cat)
MODEL=$(echo "$input" | jq -r '.model.display_name')
DIR=$(echo "$input" | jq -r '.workspace.current_dir')
PCT=$(echo "$input" | jq -r '.context_window.used_percentage // 0' | cut -d. -f1)
COST=$(echo "$input" | jq -r '.cost.total_cost_usd // 0')
DURATION_MS=$(echo "$input" | jq -r '.cost.total_duration_ms // 0')
printf '\\033[36m[%s]\\033[0m %s | %s%% | $%.2f | %dm\\n' "$MODEL" "\${DIR##*/}" "$PCT" "$COST" "$((DURATION_MS / 60000))"
echo 'a second line'
`,
    '[claude-sonnet-5] thing | 42% | $0.50 | 62m',
  ],
  [
    'bash with set -e and one call of jq',
    'strict.sh',
    `#!/usr/bin/env bash
set -euo pipefail
IFS=$'\\t' read -r model dir project style added removed over <<<"$(jq -r '[.model.display_name, .workspace.current_dir, .workspace.project_dir, .output_style.name, .cost.total_lines_added, .cost.total_lines_removed, .exceeds_200k_tokens] | @tsv')"
[ "$dir" = "$project" ] && place=home || place=away
printf '%s %s %s +%s -%s %s' "$model" "$place" "$style" "$added" "$removed" "$over"
`,
    'claude-sonnet-5 home learning +12 -3 false',
  ],
  [
    'bash that adds the tokens up',
    'usage.sh',
    `#!/bin/bash
input=$(cat)
usage=$(echo "$input" | jq '.context_window.current_usage')
size=$(echo "$input" | jq -r '.context_window.context_window_size')
if [ "$usage" != "null" ]; then
  current=$(echo "$usage" | jq '.input_tokens + .cache_creation_input_tokens + .cache_read_input_tokens')
  echo "ctx $((current * 100 / size))%"
else
  echo "ctx 0%"
fi
`,
    'ctx 42%',
  ],
  [
    'python3',
    'line.py',
    `import json, os, sys
data = json.load(sys.stdin)
model = data.get('model', {}).get('display_name', 'Claude')
cwd = os.path.basename(data['workspace']['current_dir'])
cost = data.get('cost', {}).get('total_cost_usd', 0)
style = data.get('output_style', {}).get('name')
limits = data.get('rate_limits') or {}
five = limits.get('five_hour', {}).get('used_percentage')
mode = (data.get('vim') or {}).get('mode', '')
print(f"{model} in {cwd} {style} \${cost:.2f} {'' if five is None else five}{mode} {data['session_id'][:8]}")
`,
    'claude-sonnet-5 in thing learning $0.50 NORMAL 1',
  ],
  [
    'node',
    'line.mjs',
    `let text = '';
process.stdin.on('data', (chunk) => (text += chunk));
process.stdin.on('end', () => {
  const { model, workspace, cost, context_window: window, version, agent, session_name: name } = JSON.parse(text);
  const parts = [model.display_name, workspace.added_dirs.length, name, agent?.name ?? 'main', 'v' + version];
  console.log([...parts, cost.total_api_duration_ms / 1000 + 's', window.remaining_percentage + '%'].join(' | '));
});
`,
    'claude-sonnet-5 | 1 | Parser | main | v0.1.0 | 120s | 58%',
  ],
  [
    'ours',
    'ours.sh',
    `jq -r '"\\(.model.provider)/\\(.model.id) \\(.context.percent)% $\\(.cost_usd) \\(.branch) \\(.approval)"'`,
    'openrouter/anthropic/claude-sonnet-5 42% $0.5 main dangerous',
  ],
];
const programs = { sh: 'bash', py: 'python3', mjs: process.execPath };
const isThere = (name: string): boolean => spawnSync(name, ['--version']).status === 0;

test.each(scripts)('a script works unchanged: %s', async (_name, file, text, shows) => {
  const program = programs[file.split('.').at(-1) as keyof typeof programs];
  if (!isThere(program) || (text.includes('jq') && !isThere('jq'))) return;
  const path = join(cwd, file);
  writeFileSync(path, text);
  const { status, problems, run } = open([program, path]);
  status.line('1', () => input);
  await run();
  expect([status.line('1', () => input), problems]).toEqual([shows, []]);
});

import { expect, test } from 'vitest';
import type { Repl, Spending } from '../../src/kernel/console/command.js';
import type { Approval } from '../../src/kernel/console/run-settings.js';
import { slashCommands } from '../../src/kernel/console/registration.js';
import { keepSetting } from '../../src/kernel/console/keep-setting.js';
import { table } from '../../src/commands/table.js';
import type { Event } from '../../src/kernel/core/event.js';
import { addToTotals, noTotals } from '../../src/kernel/core/usage-totals.js';
import { type ApprovalMode, planNotes, type Rule, ruleKey, type Rules } from '../../src/kernel/core/policy.js';
import type { CommandContext } from '../../src/kernel/console/slash-command.js';
import { Parts } from '../../src/kernel/console/parts.js';
import { serverStatus } from '../../src/kernel/console/server-status.js';
import { event, usage } from '../kernel/store/samples.js';

interface Said {
  readonly lines: string[];
  readonly picked: string[][];
}

/** Runs a slash command; each list is answered with the item that starts with `choice`. */
async function run(line: string, repl: Partial<Repl>, choice?: string): Promise<Said> {
  const said: Said = { lines: [], picked: [] };
  const screen: Partial<CommandContext> = {
    notice: (level, message) => {
      said.lines.push(`${level}: ${message}`);
    },
    print: (text) => {
      said.lines.push(text);
    },
    page: (title, text) => {
      said.lines.push(`${title}\n${text}`);
      return Promise.resolve(null);
    },
    pick: ({ items }) => {
      said.picked.push(items.map(({ label }) => label));
      return Promise.resolve(
        items.find(({ label }) => choice !== undefined && label.startsWith(choice))?.value ?? null,
      );
    },
    refresh: () => undefined,
    send: (text) => {
      said.lines.push(`sent: ${text}`);
    },
    setDraft: (text) => {
      said.lines.push(`draft: ${text}`);
    },
  };
  const [, name = '', argument = ''] = /^\/(\S+) ?(.*)$/.exec(line) ?? [];
  const command = slashCommands(table, repl as Repl).find((item) => item.name === name);
  await command?.run(argument, screen as CommandContext);
  return said;
}

function approval(rules: Rules = { allow: [], ask: [], deny: [] }): Approval {
  let mode: ApprovalMode = 'dangerous';
  const now = { ...rules };
  let planning = false;
  let accepts = false;
  return {
    acceptEdits: () => {
      mode = 'mutating';
      accepts = true;
    },
    acceptsEdits: () => accepts,
    planning: () => planning,
    plan: (on) => {
      planning = on;
    },
    sandbox: () => 'off',
    directories: () => [],
    addDirectory: () => undefined,
    rules: () => now,
    changeRules: (list, change) => {
      now[list] = change(now[list]);
      return Promise.resolve({ done: true, said: `Kept: ${list} = ${JSON.stringify(now[list])}.` });
    },
    mode: () => mode,
    switchTo: (next) => {
      mode = next;
      accepts = false;
    },
  };
}

function sessions(events: readonly Event[]): Repl['sessions'] {
  return {
    current: () =>
      ({
        session: {
          id: 's1',
          events: () => events,
          recent: () => events,
          totals: () => events.reduce(addToTotals, noTotals),
          ref: () => ({ provider: 'p', model: 'm' }),
        },
      }) as never,
    rename: () => Promise.resolve(),
    title: () => null,
    open: () => Promise.reject(new Error('not here')),
  };
}

const keep: Repl['keep'] = (key, value) => Promise.resolve(`Saved to /c.json: ${key} = ${JSON.stringify(value)}.`);

test('/approval changes what waits for a yes, for this run or for good, and knows its modes', async () => {
  const changed = approval();
  expect((await run('/approval never', { approval: changed, keep })).lines).toEqual([
    'info: Approvals are off. Only secret files and protected paths still ask. ' +
      'For this session only; make it the default with /approval never --keep.',
  ]);
  expect((await run('/approval mutating --keep', { approval: changed, keep })).lines).toEqual([
    'info: Approval mode mutating: edits and commands ask. Saved to /c.json: approval = "mutating".',
  ]);
  expect((await run('/approval nevr', { approval: changed, keep })).lines).toEqual([
    'warn: There is no approval mode nevr. Did you mean never? Known: always, mutating, dangerous, never, default, accept-edits, plan, bypass, yolo.',
  ]);
  expect(changed.mode()).toBe('mutating');
  const shown = await run('/approval', { approval: changed, keep }, 'always');
  expect([shown.picked, changed.mode()]).toEqual([[['always', 'mutating', 'dangerous', 'never']], 'always']);
  await run('/approval', { approval: changed, keep });
  expect(changed.mode()).toBe('always');
});

test('/effort is for the next request on, in this run or for good, and knows its levels', async () => {
  const asked: string[] = [];
  const tools = {
    effort: () => 'low',
    think: (level: string) => Promise.resolve(void asked.push(level)),
  } as never;
  const settings = { config: { provider: { models: { 'p/m': { efforts: ['low', 'high'] } } } } } as never;
  const repl = { tools, settings, sessions: sessions([]), keep };
  expect((await run('/effort high', repl)).lines).toEqual(['info: Effort high. Saved as the default.']);
  expect((await run('/effort low --session', repl)).lines).toEqual(['info: Effort low. For this session only.']);
  expect((await run('/effort max --keep', repl)).lines).toEqual([
    'info: Effort max. m has low, high: the nearest is sent. Saved as the default.',
  ]);
  const full = { ...repl, keep: () => Promise.resolve('It is not kept: the disk is full.') };
  expect((await run('/effort high', full)).lines).toEqual(['info: Effort high. It is not kept: the disk is full.']);
  expect((await run('/effort turbo', repl)).lines[0]).toMatch(/^warn: There is no effort turbo\. Known: none, /);
  expect((await run('/effort hgh', repl)).lines[0]).toMatch(
    /^warn: There is no effort hgh\. Did you mean high or xhigh\?/,
  );
  expect((await run('/effort', repl, 'low')).picked).toEqual([['low', 'high']]);
  expect(asked).toEqual(['high', 'low', 'max', 'high', 'low']);
});

const commit: Rule = { tool: 'bash', argv: ['git', 'commit'] };
const push: Rule = { tool: 'bash', argv: ['git', 'push'] };

function withRules(rules: Partial<Rules>, inSession: readonly Rule[] = []): Partial<Repl> {
  const session = { sessionRules: new Map(inSession.map((rule) => [ruleKey(rule), rule])) };
  return {
    settings: { cwd: '/none', home: '/none' } as Repl['settings'],
    approval: approval({ allow: [], ask: [], deny: [], ...rules }),
    sessions: { ...sessions([]), current: () => ({ session }) as never },
    tools: { registry: { get: (name: string) => (name === 'web_fetch' ? {} : undefined) } } as never,
  };
}

test('/plan holds everything that does more than read, until the user lets the plan be carried out', async () => {
  const events: Event[] = [];
  const repl = { approval: approval(), sessions: sessions(events) };
  const on = 'info: Plan mode: read-only. /plan when you want to act on the plan.';
  expect((await run('/plan', repl)).lines).toEqual([on]);
  expect((await run('/plan tidy the docs', repl)).lines).toEqual(['sent: tidy the docs']);
  expect((await run('/plan', repl, 'Keep')).picked).toEqual([['Keep planning', 'Leave plan mode']]);
  expect((await run('/plan off', repl)).lines).toEqual([
    'info: Plan mode is off; nothing was sent. Approval: dangerous.',
  ]);
  await run('/plan', repl);
  events.push(event(1, { content: planNotes.on }), event(2, { kind: 'assistant', content: '1. Move a.md.' }));
  expect((await run('/plan', repl)).picked).toEqual([
    ['Yes, and accept edits', 'Yes, and ask for each edit', 'Keep planning', 'Leave plan mode without running it'],
  ]);
  expect(repl.approval.planning()).toBe(true);
  expect((await run('/plan', repl, 'Yes, and ask')).lines).toEqual([
    'info: Plan mode is off. Approval: mutating.',
    'sent: Go ahead with the plan.',
  ]);
  expect((await run('/plan off', repl)).lines).toEqual(['info: Plan mode is already off.']);
});

test('/permissions lists the rules of the session and of the settings, and removes or edits the chosen one', async () => {
  const repl = withRules({ allow: [commit], deny: [push] }, [{ tool: 'web_fetch' }]);
  const listed = await run('/permissions', repl);
  expect(listed.picked).toEqual([
    [
      '1 allow {"tool":"web_fetch"}',
      '2 allow {"tool":"bash","argv":["git","commit"]}',
      '3 deny {"tool":"bash","argv":["git","push"]}',
    ],
  ]);
  expect((await run('/permissions rm 3', repl)).lines).toEqual(['info: Kept: deny = [].']);
  expect((await run('/permissions rm 1', repl)).lines).toEqual(['info: Such calls are asked about again.']);
  expect((await run('/permissions', repl)).picked).toEqual([['1 allow {"tool":"bash","argv":["git","commit"]}']]);
  expect((await run('/permissions edit 1 {"tool":"bash","argv":["git","add"]}', repl)).lines).toEqual([
    'info: Kept: allow = [{"tool":"bash","argv":["git","add"]}].',
  ]);
  expect((await run('/permissions rm 7', repl)).lines).toEqual([
    'warn: There is no such rule; /permissions lists them with their numbers.',
  ]);
});

test('/permissions add takes words, the name of a tool or JSON, and nothing that runs what follows it', async () => {
  const repl = withRules({});
  const add = async (text: string): Promise<readonly string[]> => (await run(`/permissions add ${text}`, repl)).lines;
  expect(await add('allow git push')).toEqual(['info: Kept: allow = [{"tool":"bash","argv":["git","push"]}].']);
  expect(await add('deny Bash(git push:*)')).toEqual(['info: Kept: deny = [{"tool":"bash","argv":["git","push"]}].']);
  expect(await add('ask web_fetch')).toEqual(['info: Kept: ask = [{"tool":"web_fetch"}].']);
  expect(await add('deny {"path":"~/notes/**"}')).toEqual([
    'info: Kept: deny = [{"tool":"bash","argv":["git","push"]},{"path":"~/notes/**"}].',
  ]);
  expect(await add('allow sudo make')).toEqual([
    'warn: No such rule: sudo runs whatever follows it, so it cannot be allowed by its leading words.',
  ]);
  expect(await add('allow {"tool":"bash"}')).toEqual([
    'warn: No such rule: an allow rule for bash needs the leading words of a command.',
  ]);
  for (const wrong of [
    'allow',
    'maybe git',
    'deny {}',
    'deny {"tol":"bash"}',
    'deny {"argv":[]}',
    'allow bash(git push)',
    'allow Edit(*.ts)',
  ])
    expect((await add(wrong))[0], wrong).toMatch(/^warn: That is not a rule/);
});

test('/budget shows, sets, raises and lifts the limit, and refuses one without a price', async () => {
  let limit: number | null = null;
  let priced = true;
  const spending: Spending = {
    limitUsd: () => limit,
    set: (next) => {
      limit = next;
    },
    budget: () =>
      priced || limit === null ? null : { code: 'max_cost', message: '--max-cost: no price', hint: 'Add it.' },
  };
  const repl = { spending, sessions: sessions([usage(1, 1.5)]) };
  const said = async (line: string): Promise<unknown> => [(await run(line, repl)).lines[0], limit];
  expect(await said('/budget')).toEqual(['info: $1.50 is spent, and there is no limit. /budget 5 sets one.', null]);
  expect(await said('/budget +2')).toEqual(['info: $1.50 of $3.50 is spent; $2.00 is left.', 3.5]);
  expect(await said('/budget +.5')).toEqual(['info: $1.50 of $4.00 is spent; $2.50 is left.', 4]);
  expect(await said('/budget $1')).toEqual(['info: $1.50 is spent, and the limit is $1.00: nothing more is sent.', 1]);
  expect(await said('/budget much')).toEqual([
    'error: Give an amount in US dollars: /budget 5, /budget +2, /budget off.',
    1,
  ]);
  priced = false;
  expect(await said('/budget 9')).toEqual(['error: /budget: no price. Add it.', 1]);
  expect(await said('/budget off')).toEqual(['info: $1.50 is spent, and there is no limit. /budget 5 sets one.', null]);
});

const spent = (seq: number, costUsd: number | null): Event =>
  event(seq, {
    kind: 'usage',
    content: null,
    data: {
      response_id: `r${seq}`,
      input_tokens: 10,
      output_tokens: 5,
      cache_read_tokens: 3,
      cache_write_tokens: 2,
      cost_usd: costUsd,
    },
  });

test('/cost sums what is on record, and says unknown once a price is', async () => {
  const row = async (...events: readonly Event[]): Promise<string> =>
    (await run('/cost', { sessions: sessions(events) })).lines[0]?.split('\n').at(-1) ?? '';
  expect(await row(spent(1, 0.5), event(2), spent(3, 0.25))).toBe('| 2 | 20 | 6 | 4 | 10 | $0.7500 |');
  expect(await row(spent(1, 0.5), spent(2, null))).toBe('| 2 | 20 | 6 | 4 | 10 | unknown |');
});

test('/clear says how to come back to a session that is kept, /rename asks for a title', async () => {
  const opened: unknown[] = [];
  const repl = (events: readonly Event[]): Partial<Repl> => ({
    sessions: {
      ...sessions(events),
      open: (request) => {
        opened.push(request);
        return Promise.resolve({} as never);
      },
    },
  });
  const attach = { attach: () => undefined };
  const clear = slashCommands(table, repl([event(1)]) as Repl).find(({ name }) => name === 'clear');
  const said: string[] = [];
  await clear?.run('', {
    ...attach,
    notice: (_level: string, message: string) => {
      said.push(message);
    },
  } as never);
  expect([said, opened]).toEqual([
    ['New session. /resume s1 returns to the previous one.'],
    [{ continueNewest: false, resume: null, fork: false }],
  ]);
  expect((await run('/rename', repl([]))).lines).toEqual([
    'warn: The model gave no title. Give one: /rename parser rewrite',
  ]);
  expect((await run('/rename  a b ', repl([]))).lines).toEqual(['info: This session is now called a b.']);
});

test('nothing is kept where nothing may be on disk', async () => {
  const settings = { config: { files: { config: '/nowhere/config.json' } }, loaded: { origins: {} } };
  expect(await keepSetting(settings as never, true, 'approval', 'never')).toEqual({
    done: false,
    said: 'Not saved: --ephemeral writes nothing to disk.',
  });
});

test('/usage shows tokens, cost and limits; /status the session on one screen; /todos the list of steps', async () => {
  const events: Event[] = [
    usage(1, 0.5),
    event(2, {
      kind: 'tool_call',
      content: 'todo',
      data: {
        id: 'c1',
        type: 'function',
        function: { name: 'todo', arguments: '{"items":[{"text":"Fix total","status":"active"}]}' },
        response_id: 'r1',
      },
    }),
    event(3, {
      kind: 'tool_result',
      content: 'kept',
      data: { tool_call_id: 'c1', name: 'todo', output: '{"output":"kept"}', success: true, duration_ms: 1 },
    }),
  ];
  const spending: Spending = { limitUsd: () => 2, set: () => undefined, budget: () => null };
  const config = {
    policy: { sandbox: 'workspace' },
    provider: { models: { 'p/m': { contextWindow: 1_000 } } },
    limits: { maxToolTurns: 7 },
  };
  const repl = {
    spending,
    roles: { get: (role: string) => (role === 'plan' ? 'opus' : null), set: () => undefined },
    sessions: sessions(events),
    approval: approval({ allow: [commit], ask: [], deny: [push] }),
    tools: { registry: { list: () => [1, 2] }, effort: () => 'high' } as never,
    settings: { config, cwd: '/work/x', guard: { text: (text: string) => text.replaceAll('sk-1', '***') } } as never,
    parts: new Parts().add(serverStatus, () =>
      Promise.resolve([{ name: 'files sk-1', state: 'connected', problem: null }]),
    ),
  };
  const [status = ''] = (await run('/status', repl)).lines;
  expect(status.split('\n').map((row) => row.replace(/ {2,}/g, ': '))).toEqual(
    expect.arrayContaining([
      'Model: p/m, effort high',
      'Models by role: plan=opus (/model)',
      'Approval: dangerous',
      'Rules: 2 rules (/permissions)',
      'Sandbox: workspace',
      'Tools: 2 offered (/tools)',
      'Folder: /work/x',
      'Session: s1',
      'MCP servers: files *** connected (/mcp)',
      'Cost: $0.50',
      'Cost limit: $2.00',
      'Tool turns: at most 7 per message',
    ]),
  );
  const [usageText = ''] = (await run('/usage', repl)).lines;
  expect(usageText).toMatch(/Requests +1\n/);
  expect((await run('/todos', repl)).lines).toEqual(['[>] Fix total']);
  expect((await run('/todos', { ...repl, sessions: sessions([]) })).lines).toEqual(['The todo list is empty.']);
});

test('/compact undo is /uncompact', async () => {
  const repl = {
    sessions: {
      ...sessions([]),
      current: () => ({ session: { events: () => [], recent: () => [], busy: () => false } }) as never,
    },
  };
  for (const line of ['/uncompact', '/compact undo'])
    expect((await run(line, repl)).lines).toEqual(['info: There is no compaction to undo.']);
});

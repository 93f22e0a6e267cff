import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { trustedBefore } from '../../src/app/settings.js';
import { createTools } from '../../src/commands/line-parts.js';
import { table } from '../../src/commands/table.js';
import { loadConfig } from '../../src/kernel/config/load.js';
import type { Repl, Themes } from '../../src/kernel/console/command.js';
import { slashCommands } from '../../src/kernel/console/registration.js';
import type { SlashCommand } from '../../src/kernel/console/slash-command.js';
import { facts, type Harness, openRepl, shown } from '../ui/repl-harness.js';

const [down, enter, escape, clear] = ['\u001b[B', '\r', '\u001b', '\u0015'];

/** A user and a project with settings on the disk. */
interface Place {
  readonly own: string;
  readonly shared: string;
  /** The files of settings as they are; null where there is none. */
  readonly files: () => { readonly own: string | null; readonly shared: string | null };
  /** What the run was told to use at once. */
  readonly applied: unknown[];
  readonly commands: () => Promise<readonly SlashCommand[]>;
}

interface Given {
  readonly own?: string;
  readonly shared?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly flags?: Readonly<Record<string, unknown>>;
  readonly ephemeral?: boolean;
}

function place({ own = '{}\n', shared, env: variables = {}, flags = {}, ephemeral = false }: Given = {}): Place {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'config-')));
  const [home, cwd] = [join(root, 'home'), join(root, 'work/sub')];
  const env = { AGENT_HOME: join(home, 'agent'), ...variables };
  const ownFile = join(home, 'agent/config.json');
  const sharedFile = join(root, 'work/.agent/config.json');
  for (const folder of [dirname(ownFile), cwd, join(root, 'work/.git')]) mkdirSync(folder, { recursive: true });
  writeFileSync(ownFile, own, { mode: 0o600 });
  if (shared !== undefined) {
    mkdirSync(dirname(sharedFile));
    writeFileSync(sharedFile, shared);
  }
  const request = { env, cwd, home, flags, projectTrusted: trustedBefore(env, home) };
  const applied: unknown[] = [];
  const read = (path: string): string | null => (existsSync(path) ? readFileSync(path, 'utf8') : null);
  const themes: Themes = {
    current: () => 'dark',
    folder: () => '/themes',
    names: () => [],
    load: async () => null,
    chosen: (name) => {
      applied.push(name);
    },
  };
  return {
    own: ownFile,
    shared: sharedFile,
    files: () => ({ own: read(ownFile), shared: read(sharedFile) }),
    applied,
    commands: async () => {
      const loaded = await loadConfig(request);
      const repl: Partial<Repl> = {
        settings: { cwd, home, env, loaded, config: loaded.config, ephemeral } as never,
        line: { request, tools: createTools(() => Promise.reject(new Error('not read'))) } as never,
        tools: { think: (effort: string) => Promise.resolve(void applied.push(effort)) } as never,
        themes,
      };
      return slashCommands(table, repl as Repl).filter(({ name }) => name === 'config');
    },
  };
}

interface Dialog {
  readonly harness: Harness;
  readonly screen: () => string;
  /** Sends keys, one after the other, each once the text before it is on the screen. */
  press(...steps: readonly (readonly [until: string, keys: string])[]): Promise<void>;
  until(text: string): Promise<string>;
}

async function dialog(
  at: Place,
  options: { readonly plain?: boolean; readonly columns?: number } = {},
): Promise<Dialog> {
  const { plain = false, columns = 100 } = options;
  const commands = await at.commands();
  const harness = openRepl({ commands, columns, rows: 30, facts: { ...facts, plain, unicode: !plain } });
  onTestFinished(() => {
    harness.repl.exit();
  });
  const screen = (): string => (plain ? harness.terminal.sent() : shown(harness.terminal).join('\n'));
  const until = async (text: string): Promise<string> => {
    for (let turn = 0; turn < 300 && !screen().includes(text); turn++) await harness.settle();
    expect(screen()).toContain(text);
    return screen();
  };
  return {
    harness,
    screen,
    until,
    press: async (...steps) => {
      for (const [wanted, keys] of steps) {
        await until(wanted);
        harness.type(keys);
        await harness.settle();
      }
    },
  };
}

/** Runs one line without a screen; the notices and what is printed. */
async function said(at: Place, argument: string): Promise<readonly string[]> {
  const lines: string[] = [];
  const [command] = await at.commands();
  await command?.run(argument, {
    signal: new AbortController().signal,
    notice: (level: string, message: string) => {
      lines.push(`${level}: ${message}`);
    },
    print: (text: string) => {
      lines.push(text);
    },
    pick: ({ listing }: { readonly listing?: string }) => {
      lines.push(listing ?? '');
      return Promise.resolve(null);
    },
    setTheme: () => true,
    refresh: () => undefined,
  } as never);
  return lines;
}

test('the list says each value and its source, and filters while one types', async () => {
  const at = place({
    own: '{"ui": {"wrap": "terminal"}}',
    env: { AGENT_UI_NOTIFY: 'bell' },
    flags: { max_tool_turns: 9 },
  });
  const { press, until, harness } = await dialog(at);
  harness.type('/config\r');
  await press(['Filter: type to search', 'ui.']);
  const rows = await until('Filter: ui.');
  expect(rows).toMatch(/ui\.wrap +"terminal" · your settings/);
  expect(rows).toMatch(/ui\.notify +"bell" · AGENT_UI_NOTIFY/);
  expect(rows).toMatch(/ui\.keys +"emacs" · default/);
  expect(rows).not.toContain('fs.deny');
  await press(['Filter: ui.', clear], ['type to search', 'max_tool_turns']);
  expect(await until('Filter: max_tool_turns')).toMatch(/max_tool_turns +9 · option/);
  // A part of the description finds a setting, too.
  await press(['Filter: max', clear], ['type to search', 'line breaks']);
  expect(await until('Filter: line breaks')).toContain('Filter: line breaks');
});

test('a choice for all projects is written with the comments kept, counts at once, and u undoes it', async () => {
  const before = '{\n  "ui": {\n    // no long lines\n    "wrap": "terminal"\n  } // mine\n}\n';
  const at = place({ own: before });
  const { press, until, harness } = await dialog(at);
  harness.type('/config\r');
  await press(['type to search', 'ui.theme'], ['Filter: ui.theme', enter]);
  expect(await until('Colours:')).toMatch(/auto +now, default/);
  await press(['Colours:', `light${enter}`], ['where?', enter]);
  const saved = await until('Saved to');
  expect(at.files().own).toBe(before.replace('"terminal"', '"terminal",\n    "theme": "light"'));
  expect(saved).toMatch(/ui\.theme +"light" · your settings/);
  expect(saved).toContain('u undo');
  await press(['u undo', 'u']);
  const undone = await until('Undone in');
  expect(undone).toContain('ui.theme is not set again');
  expect(undone).toMatch(/ui\.theme +"auto" · default/);
  expect(at.files().own).toBe(before);
  // The keys of the list are letters of its filter once a letter was typed.
  await press(['Undone in', 'su']);
  await until('Filter: su');
});

test('a wrong value is refused with its reason and stays in the input', async () => {
  const at = place();
  const { press, until, harness } = await dialog(at);
  harness.type('/config\r');
  await press(['type to search', 'max_tool_turns'], ['Filter: max', enter], ['> 50', `${clear}none${enter}`]);
  expect(await until('must be')).toContain('! max_tool_turns must be an integer of at least 1, not "none".');
  expect(await until('> none')).toContain('Now: 50, default.');
  expect(await until('> none')).toContain('Enter answers; Esc cancels');
  expect(at.files().own).toBe('{}\n');
  await press(['> none', `${clear}12${enter}`], ['where?', enter]);
  const saved = await until('Saved to');
  expect(saved).toContain('Restart agent to use it.');
  expect(saved).toMatch(/max_tool_turns +12 · your settings · after a restart/);
  await press(['Saved to', escape]);
  expect(await until('❯ /config')).toContain('max_tool_turns = 12. Restart');
});

test('a choice for this project goes into its own file, which is trusted with it', async () => {
  const at = place();
  const { press, until, harness } = await dialog(at);
  harness.type('/config\r');
  await press(['type to search', 'tool_protocol'], ['Filter: tool', enter], ['How', `text${enter}`]);
  expect(await until('where?')).toContain('counts for everyone who has the repository');
  await press(['where?', `${down}${enter}`]);
  expect(await until('Saved to')).toMatch(/tool_protocol +"text" · this project/);
  expect(at.files()).toEqual({ own: '{}\n', shared: '{\n  "tool_protocol": "text"\n}\n' });
  expect(await said(at, 'exec.timeout_s=7 --project')).toEqual([
    `info: Saved to ${at.shared}: exec.timeout_s = 7. Restart agent to use it.`,
  ]);
  // A change by another hand ends the trust, and no change of a setting brings it back.
  writeFileSync(at.shared, '{"exec": {"timeout_s": 500}}');
  await said(at, 'tool_protocol=native --project');
  expect((await said(at, 'exec.timeout_s')).join()).toContain('120 (default)');
});

test('a setting that counts at once can be changed for this session alone, which writes nothing', async () => {
  const at = place();
  const { press, until, harness } = await dialog(at);
  harness.type('/config\r');
  await press(
    ['type to search', 'reasoning effort'],
    ['Filter: reasoning', enter],
    ['nearest supported level', `low${enter}`],
  );
  await press(['Only in this session', `${down}${down}${enter}`]);
  const rows = await until('effort = "low" in this session. Your settings stay as they are.');
  expect(rows).toMatch(/ effort +not set/);
  expect(rows).not.toContain('u undo');
  expect(at.applied).toEqual(['low']);
  expect(await said(at, 'effort=high --session')).toEqual([
    'info: effort = "high" in this session. Your settings stay as they are.',
  ]);
  expect(at.applied).toEqual(['low', 'high']);
  expect(await said(at, '--session exec.timeout_s=7')).toEqual([
    'error: Not set: exec.timeout_s cannot change within a session. Leave out --session, or start agent with --set exec.timeout_s=VALUE.',
  ]);
  expect(at.files()).toEqual({ own: '{}\n', shared: null });
  await press(['Your settings stay', clear], ['type to search', 'exec.timeout_s'], ['Filter: exec', enter]);
  await press(['> 120', `${clear}7${enter}`]);
  expect(await until('where?')).not.toContain('Only in this session');
});

test('a key that only the user may set is not offered for a project', async () => {
  const at = place();
  const { press, until, harness } = await dialog(at);
  harness.type('/config\r');
  await press(['type to search', 'key_store'], ['Filter: key', enter], ['Where', `keyring${enter}`]);
  expect(await until('Saved to')).not.toContain('where?');
  expect(at.files()).toEqual({ own: expect.stringContaining('"key_store": "keyring"'), shared: null });
  expect(await said(at, '--project base_url=http://x')).toEqual([
    'error: Not saved: base_url can only be set in your own settings. Leave out --project.',
  ]);
});

test('/config key shows one setting, /config key=value sets it, and /config undo undoes it in a later run', async () => {
  const at = place({ own: '{}\n' });
  expect(await said(at, 'exec.timeout_s')).toEqual([
    expect.stringMatching(/^info: exec\.timeout_s = 120 \(default\)\n/),
  ]);
  expect(await said(at, 'exec.timeout_s=7')).toEqual([
    `info: Saved to ${at.own}: exec.timeout_s = 7. Restart agent to use it.`,
  ]);
  expect(await said(at, 'effort high')).toEqual([`info: Saved to ${at.own}: effort = "high".`]);
  expect(at.applied).toEqual(['high']);
  expect(await said(at, 'exec.timeout_s = 0')).toEqual([
    'error: Not saved: exec.timeout_s must be an integer of at least 1, not 0.',
  ]);
  expect(await said(at, 'ui.them')).toEqual([
    'error: There is no setting ui.them. Did you mean ui.theme? /config lists all.',
  ]);
  await said(at, 'undo');
  expect(await said(at, 'undo')).toEqual([
    `info: Undone in ${at.own}: exec.timeout_s is not set again. Restart agent to use it.`,
  ]);
  // The section came with the change, so it goes with it.
  expect(JSON.parse(at.files().own ?? '')).toEqual({});
  expect(await said(at, 'undo')).toEqual(['warn: Nothing to undo: /config has not changed a setting.']);
});

test('undo leaves alone what was changed since, and keeps no secret', async () => {
  const at = place({ own: '{"max_tool_calls": 5}' });
  await said(at, 'max_tool_calls=6');
  writeFileSync(at.own, '{"max_tool_calls": 7}');
  expect(await said(at, 'undo')).toEqual([`warn: Not undone: max_tool_calls in ${at.own} has been changed since.`]);
  expect(at.files().own).toBe('{"max_tool_calls": 7}');
  const header = 'providers.x.headers.Authorization';
  expect(await said(at, `${header}=first-value`)).toEqual([
    `info: Saved to ${at.own}: ${header} = "***". Restart agent to use it.`,
  ]);
  await said(at, `${header}=second-value`);
  const undo = readFileSync(join(dirname(at.own), 'config-undo.json'), 'utf8');
  expect(undo).not.toContain('first-value');
  expect(await said(at, 'undo')).toEqual([
    `warn: Not undone: the earlier value of ${header} contains a secret and was not kept. Set it with /config ${header}=…`,
  ]);
  expect((await said(at, header)).join()).not.toContain('second-value');
  expect((await said(at, '')).join()).toMatch(/Authorization = "\*\*\*" \(user file/);
});

test('what a stronger source sets says so', async () => {
  const at = place({ env: { AGENT_UI_WRAP: 'words' }, flags: { max_tool_turns: 9 }, shared: '{"max_tool_calls": 3}' });
  expect(await said(at, 'ui.wrap=terminal')).toEqual([
    `info: Saved to ${at.own}: ui.wrap = "terminal". The variable AGENT_UI_WRAP sets it: what you save has an effect once that is unset.`,
  ]);
  expect((await said(at, 'max_tool_turns=8')).join()).toContain('An option of this run sets it');
  expect((await said(at, 'max_tool_calls=8')).join()).toContain('The settings of this project override it here.');
  const { press, until, harness } = await dialog(at);
  harness.type('/config\r');
  await press(['type to search', 'ui.wrap'], ['Filter: ui.wrap', enter]);
  expect((await until('sets it:')).replaceAll('\n', ' ')).toContain('The variable AGENT_UI_WRAP sets it');
});

test('the file of a project that was not trusted is not trusted by a change of it, and keeps its mode', async () => {
  const at = place({ shared: '{\n  "exec": { "timeout_s": 500 }\n}\n' });
  chmodSync(at.shared, 0o664);
  expect(await said(at, 'tool_protocol=text --project')).toEqual([
    `info: Saved to ${at.shared}: tool_protocol = "text". It does not count yet: this file is not trusted. Review it with agent config trust.`,
  ]);
  expect((await said(at, 'exec.timeout_s')).join()).toContain('120 (default)');
  expect(JSON.parse(at.files().shared ?? '')).toEqual({ exec: { timeout_s: 500 }, tool_protocol: 'text' });
  expect(statSync(at.shared).mode & 0o777).toBe(0o664);
});

test('a change with which agent would not start is reverted', async () => {
  const at = place({ own: '{ "toolsets": ["-web"] } // mine\n' });
  expect((await said(at, 'tools.web=true')).join()).toMatch(/^error: Not saved: .*`toolsets` names -web/);
  expect((await said(at, 'tools.limits.bsh.timeout_ms=5')).join()).toMatch(/^error: Not saved: .*tools\.limits\.bsh/);
  expect(at.files().own).toBe('{ "toolsets": ["-web"] } // mine\n');
  expect(await said(place({ ephemeral: true }), 'exec.timeout_s=7')).toEqual([
    'error: Not saved: --ephemeral writes nothing to disk.',
  ]);
});

test('a link that leads out of the project is not written', async () => {
  const at = place();
  const elsewhere = join(dirname(at.own), 'elsewhere');
  mkdirSync(elsewhere);
  writeFileSync(join(elsewhere, 'config.json'), '{}');
  symlinkSync(elsewhere, dirname(at.shared));
  expect((await said(at, '--project exec.timeout_s=7')).join()).toMatch(
    /^error: Not saved: .*a link out of the project/,
  );
  expect(readFileSync(join(elsewhere, 'config.json'), 'utf8')).toBe('{}');
});

test('a broken file is not written, and the reason names its place', async () => {
  const at = place({ own: '{ "ui": ' });
  expect((await said(at, 'exec.timeout_s=7')).join()).toMatch(
    /^error: Not saved: .*config\.json:1:\d+: not valid JSON/,
  );
  expect(at.files().own).toBe('{ "ui": ');
});

test('on a plain screen settings are chosen by number and values written', async () => {
  const at = place();
  const { press, until, harness } = await dialog(at, { plain: true });
  harness.type('/config\n');
  const row = /^(\d+)\. exec\.timeout_s/m.exec(await until('number: '))?.[1] ?? '';
  await press(['number: ', `${row}\n`], ['or nothing for 120: ', '30\n'], ['2. Only in this project', '1\n']);
  await until('Saved to');
  expect(JSON.parse(at.files().own ?? '')).toEqual({ exec: { timeout_s: 30 } });
});

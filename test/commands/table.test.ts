import { Command } from 'commander';
import { expect, test } from 'vitest';
import type { CommandLine, Repl, CommandHandler } from '../../src/kernel/console/command.js';
import { addVerbs, slashCommands, verbNames } from '../../src/kernel/console/registration.js';
import { showHelp } from '../../src/commands/about.js';
import { commandSpec, completionScript } from '../../src/commands/complete-shell.js';
import type { Section } from '../../src/kernel/console/command.js';
import { table } from '../../src/commands/table.js';
import { foreignSlashCommands } from '../../src/kernel/console/foreign-slash-commands.js';
import { rootOptions } from '../../src/kernel/console/options.js';
import { slashGroups, typedCommand, unknownCommand } from '../../src/kernel/console/slash-command.js';
import { knownKeys } from '../../src/kernel/config/settings-schema.js';
import { openRepl } from '../ui/repl-harness.js';

const ran: string[] = [];
const planted: CommandHandler = {
  line: {
    example: 'agent planted oak --deep',
    options: (command) => command.option('--deep', 'as far down as it goes'),
    run: async (_line, args, { deep }: { readonly deep?: boolean }) => {
      ran.push(`line ${args.join(' ')} ${String(deep)}`);
      return 3;
    },
  },
  slash: async (argument) => {
    ran.push(`slash ${argument}`);
  },
};
/** One more line, as a contributor would add it. */
const withPlanted: readonly Section[] = [
  ...table,
  {
    heading: 'Planted:',
    entries: [
      {
        line: ['planted <seed>', 'puts a seed into the ground'],
        slash: ['planted|sown <seed>', 'puts a seed into this session', 'program'],
        load: () => Promise.resolve(planted),
      },
    ],
  },
];

async function programOf(load: readonly string[] | 'all', codes: number[] = []): Promise<Command> {
  const program = new Command('agent').exitOverride();
  await addVerbs(program, withPlanted, {
    load,
    line: () => Promise.resolve({} as CommandLine),
    finish: (code) => {
      codes.push(code);
    },
  });
  return program;
}

test('a line in the table is all it takes for the command line, its help and every completion script', async () => {
  const program = await programOf('all');
  expect(program.helpInformation()).toMatch(/Planted:\n {2}planted \[options\] <seed> +puts a seed into the ground/);
  const command = program.commands.find((item) => item.name() === 'planted');
  expect(command?.helpInformation()).toMatch(/--deep +as far down as it goes/);
  for (const shell of ['bash', 'zsh', 'fish'] as const) {
    const script = completionScript(shell, commandSpec(program, []));
    expect(script).toContain("'planted'");
    expect(script).toContain(shell === 'fish' ? '-l deep' : '--deep');
  }
  const codes: number[] = [];
  await (await programOf(['planted'], codes)).parseAsync(['planted', 'oak', '--deep'], { from: 'user' });
  expect([ran.splice(0), codes]).toEqual([['line oak true'], [3]]);
  expect(verbNames(withPlanted)).toContain('planted');
});

test('the same line is all it takes for the REPL, its menu and /help', async () => {
  const commands = slashCommands(withPlanted, {} as Repl);
  let help = '';
  await showHelp.slash?.('', {
    screen: {
      print: (text: string) => {
        help = text;
      },
    },
    commands: () => commands,
    settings: { config: { ui: { bindings: {} } } },
  } as unknown as Repl);
  expect(help).toContain('| /planted <seed> | puts a seed into this session (/sown) |');
  const harness = openRepl({ commands });
  harness.type('/plan');
  await harness.settle();
  expect(harness.terminal.lines().join('\n')).toMatch(/\/planted.*puts a seed into this session/);
  harness.type('\x15/sown oak\r');
  await harness.settle();
  expect(ran.splice(0)).toEqual(['slash oak']);
});

test('a verb is loaded when it is used: a start loads none, a word of the command line its own', async () => {
  const loaded: string[] = [];
  const watched = table.map((section) => ({
    ...section,
    entries: section.entries.map((entry) => ({
      ...entry,
      load: () => {
        loaded.push(entry.line?.[0] ?? entry.slash?.[0] ?? '');
        return Promise.resolve({ line: { example: '' } });
      },
    })),
  }));
  const add = (load: readonly string[]): Promise<void> =>
    addVerbs(new Command('agent'), watched, {
      load,
      line: () => Promise.resolve({} as CommandLine),
      finish: () => undefined,
    });
  await add([]);
  slashCommands(watched, {} as Repl);
  expect(loaded).toEqual([]);
  await add(['stats', 'providers']);
  expect(loaded).toEqual(['stats', 'providers', 'providers check <name>']);
});

test('every line of the table has its form, under a name of its own', async () => {
  const names = slashCommands(table, {} as Repl).flatMap(({ name, aliases = [] }) => [name, ...aliases]);
  expect(new Set(names).size).toBe(names.length);
  for (const { line, slash, leaves, load } of table.flatMap(({ entries }) => entries)) {
    const verb = (await load?.()) ?? {};
    expect([line?.[0], verb.line !== undefined]).toEqual([line?.[0], line !== undefined]);
    expect([slash?.[0], verb.slash !== undefined || leaves === true]).toEqual([slash?.[0], slash !== undefined]);
  }
});

test('each slash command has a group, and the menu and /help follow the groups', () => {
  const commands = slashCommands(withPlanted, {} as Repl);
  const groups = commands.map(({ group }) => group);
  expect(new Set(groups)).toEqual(new Set(Object.keys(slashGroups)));
  expect(groups).toEqual(Object.keys(slashGroups).flatMap((group) => groups.filter((one) => one === group)));
  const names = commands.flatMap(({ name, aliases = [] }) => [name, ...aliases]);
  expect(names).toEqual([...new Set(names)]);
});

test.each([
  ['checkpoint', '/rewind'],
  ['tree', '/rewind'],
  ['summarize', '/compact'],
  ['undo-all', '/undo'],
  ['cost-limit', '/budget'],
  ['yolo', '/approval'],
  ['allowed-tools', '/permissions'],
  ['background', '/jobs'],
  ['cron', '/tasks'],
  ['todo', '/todos'],
  ['thinking', '/effort'],
  ['tokens', '/usage'],
  ['modle', '/model'],
  ['chats', '/resume'],
  ['signin', '/login'],
  ['clipboard', '/copy'],
  ['keyboard', '/keys'],
])('the unknown name /%s suggests %s by its meaning or its letters', (name, wanted) => {
  const commands = slashCommands(table, {} as Repl);
  const typed = { name, argument: '', command: undefined };
  expect(unknownCommand(typed, commands)).toMatch(new RegExp(`Did you mean ${wanted}\\?\n/help`));
});

test.each([
  'status',
  'usage',
  'stats',
  'todos',
  'settings',
  'bashes',
  'continue',
  'history',
  'keys',
  'ps',
  'new',
  'quit',
])('/%s, as other agents call it, is known', (name) => {
  expect(typedCommand(`/${name}`, slashCommands(table, {} as Repl))?.command).toBeDefined();
});

test('commands of other agents without an equal say what does the same, with names that exist', async () => {
  const commands = slashCommands(table, {} as Repl);
  const program = await programOf('all');
  const words = new Set(program.commands.map((command) => command.name()));
  const settings = knownKeys();
  const flags = Object.values(rootOptions).flatMap(({ flags: text }) => text.match(/--[\w-]+/g) ?? []);
  for (const [name, sentence] of Object.entries(foreignSlashCommands)) {
    expect(typedCommand(`/${name}`, commands)?.command, name).toBeUndefined();
    const said = unknownCommand({ name, argument: '', command: undefined }, commands);
    expect(said).toContain(sentence);
    for (const [, slash = ''] of sentence.matchAll(/(?<![\w<])\/(\w+)/g))
      expect(typedCommand(`/${slash}`, commands)?.command, `/${slash} of /${name}`).toBeDefined();
    for (const [, verb = ''] of sentence.matchAll(/\bagent (?!in )([a-z]+)/g)) expect(words, name).toContain(verb);
    for (const [, key = ''] of sentence.matchAll(/\b(ui\.\w+)/g)) expect(settings, name).toContain(key);
    for (const [flag] of sentence.matchAll(/(?<!\S)--(?!help|from|all)[\w-]+/g)) expect(flags, name).toContain(flag);
  }
});

import { Command } from 'commander';
import { expect, test } from 'vitest';
import type { CommandLine, Repl, CommandHandler } from '../../src/kernel/console/command.js';
import { addVerbs, slashCommands, verbNames } from '../../src/kernel/console/registration.js';
import { showHelp } from '../../src/commands/about.js';
import { commandSpec, completionScript } from '../../src/commands/complete-shell.js';
import type { Section } from '../../src/kernel/console/command.js';
import { table } from '../../src/commands/table.js';
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
        slash: ['planted|sown <seed>', 'puts a seed into this session'],
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
  expect(help).toContain('| /planted <seed> | puts a seed into this session |');
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

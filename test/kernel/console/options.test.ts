import { Command } from 'commander';
import { expect, test } from 'vitest';
import {
  globalOptions,
  namesOf,
  opensRepl,
  optionSettings,
  type OptionTable,
  rootOptions,
} from '../../../src/kernel/console/options.js';
import { addOptions } from '../../../src/cli/run.js';
import { settingFlags } from '../../../src/app/settings.js';
import { commandSpec } from '../../../src/commands/complete-shell.js';

const planted: OptionTable = {
  ...rootOptions,
  planted: {
    group: 'Planted:',
    flags: '-x, --planted <seed|bulb>',
    about: 'grows in every place',
    setting: 'planted_key',
    global: true,
  },
};

/** A command line that gives the option. */
function given(flags: string): readonly string[] {
  const { names, value } = namesOf(flags);
  return [names.at(-1) ?? '', ...(value === 'none' ? [] : ['7'])];
}

test('an option that is added to the table is in the help, the completion, the settings and the early prompt', () => {
  const program = addOptions(new Command('agent'), planted);
  program.parse(['--planted', 'seed'], { from: 'user' });
  expect(program.helpInformation()).toMatch(/Planted:\n {2}-x, --planted <seed\|bulb> +grows in every place/);
  expect(commandSpec(program, globalOptions(planted)).options).toContainEqual({
    flags: ['-x', '--planted'],
    description: 'grows in every place',
    value: ['seed', 'bulb'],
    global: true,
  });
  expect(globalOptions(planted)).toContain('--planted');
  expect(optionSettings(program.opts(), planted)).toEqual({ planted_key: 'seed' });
  expect([opensRepl(['-x', 'seed', '-c'], planted), opensRepl(['-x', 'seed', '-c'])]).toEqual([true, false]);
});

test('commander gives each option the name it has in the table', () => {
  const program = addOptions(new Command('agent'), rootOptions);
  const attributes = program.options.map((option) =>
    option.negate
      ? `no${option.attributeName().replace(/^./, (first) => first.toUpperCase())}`
      : option.attributeName(),
  );
  expect(attributes).toEqual(Object.keys(rootOptions));
});

test('the prompt is painted early for every option but those that may print something else', () => {
  const late = Object.entries(rootOptions).flatMap(([name, { flags }]) => (opensRepl(given(flags)) ? [] : [name]));
  expect(late).toEqual([
    ...['bg', 'print', 'goal', 'goalCheck', 'maxGoalTurns', 'waitForLimit', 'next'],
    ...['outputFormat', 'inputFormat', 'jsonSchema', 'output'],
  ]);
});

test.each([
  [[], true],
  [['-c', '--model', 'openai/m'], true],
  [['-r'], true],
  [['-r', '0198', '--fork'], true],
  [['fix the parser'], false],
  [['-c', 'sessions', 'list'], false],
  [['--help'], false],
  [['-V'], false],
  [['--modle', 'm'], false],
] as const)('%j opens the REPL for certain: %j', (argv, opens) => {
  expect(opensRepl(argv)).toBe(opens);
});

test('options become settings, numbers as numbers, and --safe stands for two that may be given by themselves', () => {
  expect(settingFlags({ model: 'm', maxCost: '0.5', maxToolTurns: 'many', tools: false }, '/')).toEqual({
    model: 'm',
    max_cost_usd: 0.5,
    max_tool_turns: 'many',
  });
  expect(settingFlags({ safe: true }, '/')).toEqual({ approval: 'mutating', sandbox: 'workspace' });
  expect(settingFlags({ safe: true, approval: 'never', set: ['sandbox=off'] }, '/')).toEqual({ approval: 'never' });
});

import type { Command, Option } from 'commander';
import { didYouMean } from '../../core/text.js';
import { builtInPresets } from '../../providers/presets.js';
import { CliError, exit } from '../cli-error.js';
import type { Verb } from '../command.js';
import {
  type CompletionCommand,
  type CompletionOption,
  completionScript,
  type CompletionValue,
  isCompletionShell,
} from './completion-scripts.js';

const shells: readonly string[] = ['bash', 'zsh', 'fish'];

/** `agent completion bash`: the script on stdout, made from the command line as it is. */
export const completeShell: Verb = {
  line: {
    example: 'agent completion bash >> ~/.bashrc',
    run: async ({ out, program, globalOptions }, [shell = '']) => {
      if (!isCompletionShell(shell))
        throw new CliError(
          exit.usage,
          `unknown shell \`${shell}\``,
          `${didYouMean(shell, shells)} Known: ${shells.join(', ')}`.trim(),
        );
      out.data(completionScript(shell, commandSpec(program, globalOptions)));
      return exit.done;
    },
  },
};

export function commandSpec(command: Command, globals: readonly string[]): CompletionCommand {
  const args = command.registeredArguments.map((argument): CompletionValue =>
    argument.name() === 'shell' ? shells : 'text',
  );
  return {
    name: command.name(),
    description: command.description(),
    options: command
      .createHelp()
      .visibleOptions(command)
      .map((option) => optionSpec(option, globals)),
    commands: command.commands.map((child) => commandSpec(child, globals)),
    ...(args.length > 0 ? { args } : {}),
  };
}

function optionSpec(option: Option, globals: readonly string[]): CompletionOption {
  const flags = [option.short, option.long].filter((flag) => flag !== null && flag !== undefined);
  return {
    flags,
    description: option.description,
    value: optionValue(option),
    ...(globals.includes(option.long ?? '') ? { global: true } : {}),
  };
}

function optionValue(option: Option): CompletionValue | null {
  if (!option.required && !option.optional) return null;
  const name =
    /<(.*)>|\[(.*)\]/
      .exec(option.flags)
      ?.slice(1)
      .find((part) => part !== undefined) ?? '';
  if (name === 'dir') return 'directory';
  if (option.long === '--provider') return Object.keys(builtInPresets);
  return name.includes('|') && !name.includes('@') ? name.split('|') : 'text';
}

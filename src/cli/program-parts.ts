import type { Command } from 'commander';

/** Told the exit code of the action that ran. */
export type Finish = (exitCode: number) => void;

/** Said for each command: an inherited option stands in the group of the program's own. */
export const helpFlags = ['-h, --help', 'print this'] as const;

/** A command that has others below it. */
export function group(program: Command, name: string, description: string, example: string): Command {
  return leaf(program, name, description, example);
}

/** A command with an example in its help. */
export function leaf(parent: Command, usage: string, description: string, example: string): Command {
  return parent
    .command(usage)
    .description(description)
    .addHelpText('after', `\nExample:\n  ${example}`)
    .copyInheritedSettings(parent)
    .helpOption(...helpFlags);
}

import type { Command } from 'commander';

const named = new WeakMap<Command, string[]>();

/** Declares `-m`, which may be given several times. The program has an option of that name, which reads it first, so the
 * values are taken from there. */
export function modelOption(command: Command, about: string): Command {
  const root = rootOf(command);
  const models: string[] = [];
  named.set(root, models);
  root.on('option:model', (value: string) => {
    models.push(value);
  });
  return command.option('-m, --model <[provider/]model>', about);
}

/** Returns the models that the command line names, in order. */
export function namedModels(command: Command): readonly string[] {
  return named.get(rootOf(command)) ?? [];
}

function rootOf(command: Command): Command {
  return command.parent === null ? command : rootOf(command.parent);
}

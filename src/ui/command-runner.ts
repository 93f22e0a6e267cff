import { findCommand, nearestCommand, type Command, type CommandContext } from './command.js';

/** Runs what begins with a slash. False where `text` is no command and goes to the model. A path such as `/etc/hosts is
 * …` is none. */
export function runCommand(text: string, commands: readonly Command[], context: CommandContext): boolean {
  const match =
    text.trim() === '?' ? (['/help', 'help'] as const) : /^\/([A-Za-z][\w-]*)(?:\s+([\s\S]*))?$/.exec(text.trim());
  if (!match) return false;
  const name = match[1] ?? '';
  const command = findCommand(commands, name);
  if (!command) {
    const nearest = nearestCommand(commands, name);
    context.notice(
      'error',
      `There is no command /${name}.${nearest === null ? '' : ` The nearest is /${nearest}.`}\n/help lists them all.`,
    );
    return true;
  }
  command.run((match[2] ?? '').trim(), context).catch((error: unknown) => {
    context.notice('error', `/${name} failed: ${error instanceof Error ? error.message : String(error)}`);
  });
  return true;
}

import { dirname } from 'node:path';
import { ensurePrivateDirectory } from '../../kernel/config/settings-file.js';
import { CliError, exit, type Repl } from '../../kernel/console/command.js';
import { type InstructionEntry, instructionFiles } from '../../kernel/console/instruction-files.js';
import { columns } from '../../kernel/console/line-output.js';
import { didYouMean } from '../../kernel/core/text.js';

type Instructions = Pick<Repl, 'parts' | 'screen' | 'sessions'>;

function instructionsOf({ parts, sessions }: Instructions): readonly InstructionEntry[] {
  return parts.find(instructionFiles)?.(sessions.current().session.record.conversation()) ?? [];
}

/** Returns a row for each file of instructions, for the end of the list of notes. */
export function instructionRows(repl: Instructions): readonly string[] {
  const files = instructionsOf(repl);
  if (files.length === 0) return [];
  const rows = files.map(({ name, bytes, when }) => [name, when, bytes === 0 ? '' : `${Math.ceil(bytes / 4)} tokens`]);
  return ['', 'Instruction files (/memory open):', ...columns(rows)];
}

/** `/memory open [file]`: opens a file of instructions in the user's editor. */
export async function openInstructionFile(argument: string, repl: Instructions): Promise<void> {
  const { screen } = repl;
  const files = instructionsOf(repl);
  const chosen = argument === '' ? await pickFile(files, repl) : fileNamed(argument, files);
  if (chosen === null) return;
  ensurePrivateDirectory(dirname(chosen.path));
  const isDone = await screen.openEditor(chosen.path);
  if (isDone === null) screen.print(chosen.path);
  else if (isDone)
    screen.notice(
      'info',
      `${chosen.name} is closed. New sessions read it, and this one when it is resumed (agent -c).`,
    );
  else
    screen.notice('error', `The editor failed on ${chosen.path}. Set VISUAL or EDITOR to the command of your editor.`);
}

async function pickFile(
  files: readonly InstructionEntry[],
  { screen }: Instructions,
): Promise<InstructionEntry | null> {
  return await screen.pick({
    title: 'Open in your editor',
    items: files.map((file) => ({ label: file.name, detail: file.when, value: file })),
  });
}

function fileNamed(name: string, files: readonly InstructionEntry[]): InstructionEntry {
  const found = files.find((file) => file.name === name || file.path === name);
  if (found !== undefined) return found;
  const names = files.map((file) => file.name);
  throw new CliError(
    exit.usage,
    `${name} is not a file of instructions here`,
    `${didYouMean(name, names)} There are: ${names.join(', ')}.`.trim(),
  );
}

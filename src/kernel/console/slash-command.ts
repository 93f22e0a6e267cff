import type { Form, FormValue } from '../core/form.js';
import type { Fault } from '../core/provider.js';
import type { SessionPort } from '../core/session-port.js';
import { foreignSlashCommands } from './foreign-slash-commands.js';
import { nameSource, nearestName } from '../core/text.js';
import type { ThemeChoice } from './theme.js';

/** One thing to choose. `detail`: what helps to choose it, such as age, directory or first words. */
export interface PickItem<T> {
  readonly label: string;
  readonly detail?: string;
  /** A text that is not shown. A filter finds the item by any part of it, below those whose label or detail fit. */
  readonly also?: string;
  readonly value: T;
}

/** The items that are found later, and a line about them. */
export interface Later<T> {
  readonly items: readonly PickItem<T>[];
  readonly marked: readonly string[];
  readonly said: string;
}

/** The things to choose from. `current` is the present value, which is selected while nothing is typed. */
export interface Picking<T> {
  readonly title: string;
  readonly items: readonly PickItem<T>[];
  readonly current?: T;
  /** It asks for a yes to something that is done at once. */ readonly confirms?: boolean;
  /** Words that are marked in the labels. */ readonly marked?: readonly string[];
  /** A line below the items. */ readonly said?: string;
  /** Letters that choose a value as the first key; later they are part of the filter. */
  readonly keys?: Readonly<Record<string, { readonly does: string; readonly value: T }>>;
  /** Printed in place of the items where there is no screen. */ readonly listing?: string;
  /** Takes the question back: it is answered with null. */ readonly signal?: AbortSignal;
  /** More, which comes behind the items once it is there, and a line until then. Must not reject. */
  readonly more?: { readonly said: string; readonly found: Promise<Later<T>> };
}

/** A question whose answer is shown nowhere and kept nowhere: no history, no draft, no transcript has it. */
export interface HiddenQuestion {
  readonly title: string;
  /** Lines that help the user to answer. */
  readonly rows: readonly string[];
  /** Takes the question back: it is answered with null. */
  readonly signal?: AbortSignal;
  /** Nobody has called for it just now: it takes keys after a pause. */
  readonly asks?: boolean;
}

/** A change of one file as a unified diff, and the call that made it. */
export interface FileChangeText {
  readonly title: string;
  readonly diff: string;
  /** Text below the change. */
  readonly below?: string;
}

/** A notification on the desktop, if the terminal can show one. */
export interface DesktopNotification {
  readonly title: string;
  readonly text: string;
}

/** The groups of the menu and of `/help` with their headings, in order. */
export const slashGroups = {
  conversation: 'Conversation',
  files: 'Files',
  model: 'Model and usage',
  tools: 'Tools and rules',
  program: 'Program',
} as const;
export type SlashGroup = keyof typeof slashGroups;

/** Returns the heading above a command. Those without a group are the user's own. */
export function groupHeading({ group }: Pick<SlashCommand, 'group'>): string {
  return group === undefined ? 'Custom' : slashGroups[group];
}

/** A slash command. The table of them comes from outside. */
export interface SlashCommand {
  /** Without the slash. */
  readonly name: string;
  readonly aliases?: readonly string[];
  /** One line, for `/help` and the completion menu. */
  readonly description: string;
  /** Missing: a custom command, a skill or a prompt of a server. */
  readonly group?: SlashGroup;
  /** Words for what it does, by which it is suggested for an unknown name. */
  readonly also?: readonly string[];
  /** It ends the program, so it is no suggestion for a name that was mistyped. */
  readonly leaves?: true;
  /** It needs the session at rest: while a turn runs, it waits in the queue. */
  readonly waits?: true;
  /** It needs the screen: what to do instead where there is none. */
  readonly needsScreen?: string;
  /** It changes no settings, rules or files. */
  readonly isHarmless?: true;
  /** It runs beside turns and other commands, and holds up none of them. */
  readonly beside?: true;
  /** The form of its argument, e.g. `[model]`. */
  readonly argument?: string;
  /** May run while a turn does. A rejection is shown as an error; it does not end the program. */
  run(argument: string, context: CommandContext): Promise<void>;
}

/** A page whose text grows. It stays at the end unless the user scrolls up. */
export interface LivePage {
  readonly title: () => string;
  readonly text: () => string;
  /** Takes what is called after each change. Returns how to end that; called once the page is closed. */
  readonly follow: (onChange: () => void) => () => void;
}

export interface PageOptions {
  /** The present state, where the text grows. Where nothing can be drawn again, the text that was given is shown. */
  readonly live?: LivePage;
  readonly prose?: boolean;
  /** The same text as changes of files, for a screen that lays them out. */
  readonly changes?: readonly FileChangeText[];
  /** The line that is in view at first. */
  readonly at?: number;
  /** Words that are marked. */
  readonly marked?: readonly string[];
  /** Keys that end it and are its answer, `enter` or letters, with what they do. Where keys cannot be pressed it is
   * answered with `enter` at once. */
  readonly keys?: Readonly<Record<string, string>>;
}

/** The present content of a box. */
export interface BoxContent {
  readonly title: string;
  /** Markdown. */
  readonly text: string;
  /** A few words below the text, such as what it waits for. */
  readonly state: string;
}

export interface BoxOptions {
  readonly content: () => BoxContent;
  /** Takes what is called after each change of the content. */
  readonly follow: (onChange: () => void) => void;
  /** Resolves once the content changes no more. Must not reject. */
  readonly whole: Promise<void>;
  /** Letters that close the box once the content is whole, and what each does. Empty if there is nothing to do. */
  readonly keys: () => Readonly<Record<string, string>>;
}

/** The names of keys, for texts on the screen. */
interface KeyNames {
  /** The first key of an action as people write it; null where it has none. */
  readonly keyOf: (action: 'interrupt') => string | null;
}

/** Says what to do first where a command cannot run beside a turn. */
export function turnRuns(command: string, { keyOf }: KeyNames): string {
  const key = keyOf('interrupt');
  return `A turn is running: interrupt it${key === null ? '' : ` (${key})`} before ${command}.`;
}

/** The parts of the screen that a command may use. All texts are sanitised before they are shown. */
export interface CommandContext extends KeyNames {
  /** Aborted when the user cancels the command. Dialogs are answered with null from then on, and nothing is sent. */
  readonly signal: AbortSignal;
  /** Prints text line by line, as Markdown, or as the change of a file. */
  print(text: string, as?: 'markdown' | FileChangeText): void;
  /** `fault`: the failure of a provider that the message is about. */
  notice(level: 'info' | 'warn' | 'error', message: string, fault?: Fault): void;
  /** The value of the chosen item, or null. The item of `current` is selected at first. */
  pick<T>(options: Picking<T>): Promise<T | null>;
  /** Asks the questions of a form; null if it was declined. */
  ask(form: Form): Promise<Readonly<Record<string, FormValue>> | null>;
  /** Asks for an answer that is not shown, such as a key; null if there is none. */
  hidden(question: HiddenQuestion): Promise<string | null>;
  /** A long text to scroll through; it does not go to the scrollback. `prose`: long lines break at words and continue
   * with an indent. Returns the key of `options.keys` that ended it, or null. */
  page(title: string, text: string, options?: PageOptions): Promise<string | null>;
  /** Opens a small box over the input, whose text may grow. Returns the key of `options.keys` that closed it, or null. */
  box(options: BoxOptions): Promise<string | null>;
  setDraft(text: string): void;
  /** Gives the terminal to the user's editor with this file. False: the editor failed. Null: there is no terminal to give. */
  openEditor(path: string): Promise<boolean | null>;
  /** Sends a message, after a turn that runs. */
  send(text: string): void;
  /** Sends a text to the clipboard of tmux or of the system, or else of the terminal. Null where there is none. May not
   * reject. */
  copy(text: string): Promise<'tmux' | 'system' | 'terminal' | null>;
  /** Changes the colours from now on. False where there are none (`NO_COLOR`, plain lines). */
  setTheme(theme: ThemeChoice): boolean;
  /** Switches to another session and shows its last exchange. A turn of the old one is interrupted. */
  attach(session: SessionPort): void;
  /** Draws the status line again after its facts have changed. */
  refresh(): void;
  exit(): void;
  /** Lets this terminal go; the session continues in the background. Returns why that is not possible, or null. */
  detach(): Promise<string | null>;
}

/** The command of a name or alias. */
export function findCommand(commands: readonly SlashCommand[], name: string): SlashCommand | undefined {
  return (
    commands.find((command) => command.name === name) ??
    commands.find((command) => command.aliases?.includes(name) === true)
  );
}

/** Returns the command that `name` most probably means: one with such a name, or one that does what it says. */
function nearestCommand(commands: readonly SlashCommand[], name: string): string | null {
  const offered = commands.filter((command) => command.leaves !== true);
  const names = offered.flatMap((command) => [command.name, ...(command.aliases ?? [])]);
  const typed = name.toLowerCase();
  const meant = offered.find(({ also }) => also?.includes(typed) === true);
  if (meant) return meant.name;
  const spelled = nearestName(typed, names);
  if (spelled !== null) return spelled;
  const parts = typed.split(/[-_:]/).filter((part) => part.length > 2);
  const part = offered.find((command) =>
    [command.name, ...(command.aliases ?? []), ...(command.also ?? [])].some((word) => parts.includes(word)),
  );
  return part?.name ?? null;
}

const commandLine = new RegExp(`^/(${nameSource}(?::${nameSource})*)(?:\\s+([\\s\\S]*))?$`, 'u');

/** Returns true for a line that names a command, one of `commands` or none. */
export function isCommandLine(text: string, commands: readonly SlashCommand[] = []): boolean {
  return text.trim() !== '?' && typedCommand(text, commands) !== null;
}

/** A name that also a file or a number may have: `/notes.txt is …` and `/2 …` are messages unless a command has it. */
const ambiguousName = /^\p{N}|\./u;

/** A slash command as it was typed. */
export interface TypedCommand {
  readonly name: string;
  readonly argument: string;
  /** Undefined: there is no command of that name. */
  readonly command: SlashCommand | undefined;
}

/** Returns the command that `text` names; null for a message. A path such as `/etc/hosts is …` is a message. */
export function typedCommand(text: string, commands: readonly SlashCommand[]): TypedCommand | null {
  const match = text.trim() === '?' ? (['/help', 'help'] as const) : commandLine.exec(text.trim());
  if (!match) return null;
  // A file system may spell a letter with a mark as two characters.
  const name = (match[1] ?? '').normalize('NFC');
  const command = findCommand(commands, name);
  return command === undefined && ambiguousName.test(name)
    ? null
    : { name, argument: (match[2] ?? '').trim(), command };
}

/** Returns the error for a name that no command has. */
export function unknownCommand({ name }: TypedCommand, commands: readonly SlashCommand[]): string {
  const elsewhere = Object.hasOwn(foreignSlashCommands, name) ? foreignSlashCommands[name] : undefined;
  const nearest = elsewhere === undefined ? nearestCommand(commands, name) : null;
  const hint = elsewhere ?? (nearest === null ? '' : `Did you mean /${nearest}?`);
  return `There is no command /${name}.${hint === '' ? '' : ` ${hint}`}\n/help lists all commands.`;
}

import type { Command, Option } from 'commander';
import { didYouMean } from '../kernel/core/text.js';
import { builtInPresets } from '../kernel/providers/catalog.js';
import { CliError, exit, type CommandHandler } from '../kernel/console/command.js';

const shells: readonly string[] = ['bash', 'zsh', 'fish'];

/** `agent completion bash`: prints the script, which is made from the command line itself. */
export const completeShell: CommandHandler = {
  line: {
    example: 'agent completion bash >> ~/.bashrc',
    run: async ({ out, program: { root, globalOptions } }, [shell = '']) => {
      if (!isCompletionShell(shell))
        throw new CliError(
          exit.usage,
          `unknown shell \`${shell}\``,
          `${didYouMean(shell, shells)} Known: ${shells.join(', ')}`.trim(),
        );
      out.data(completionScript(shell, commandSpec(root, globalOptions)));
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

export type CompletionShell = 'bash' | 'zsh' | 'fish';

export function isCompletionShell(text: string): text is CompletionShell {
  return text === 'bash' || text === 'zsh' || text === 'fish';
}

/** Returns the completion script for one shell. The script starts no program: it holds everything it offers. */
export function completionScript(shell: CompletionShell, spec: CompletionCommand): string {
  switch (shell) {
    case 'bash':
      return bashScript(spec);
    case 'zsh':
      return zshScript(spec);
    case 'fish':
      return fishScript(spec);
    default:
      return shell satisfies never;
  }
}

/** The value of an option or argument: one of some words, a file, a directory, or any text. */
export type CompletionValue = readonly string[] | 'file' | 'directory' | 'text';

export interface CompletionOption {
  /** `['-m', '--model']`. */
  readonly flags: readonly string[];
  readonly description: string;
  /** Null: the option takes no value. */
  readonly value: CompletionValue | null;
  /** True: every command below accepts the option as well. */
  readonly global?: boolean;
}

/** A command and its parts; the program itself is the root. */
export interface CompletionCommand {
  readonly name: string;
  readonly description: string;
  readonly options: readonly CompletionOption[];
  readonly commands: readonly CompletionCommand[];
  /** Its arguments, in order; the last one repeats. */
  readonly args?: readonly CompletionValue[];
}

/** A command by the words that lead to it; the root's path is empty. */
interface CompletionState {
  readonly path: string;
  readonly command: CompletionCommand;
  readonly options: readonly CompletionOption[];
}

/** Returns every command of the tree, parents first, with its options and the inherited ones. */
function completionStates(
  command: CompletionCommand,
  path = '',
  inherited: readonly CompletionOption[] = [],
): readonly CompletionState[] {
  const options = [...command.options, ...inherited];
  const passedOn = options.filter((option) => option.global === true);
  const below = command.commands.flatMap((child) =>
    completionStates(child, path === '' ? child.name : `${path} ${child.name}`, passedOn),
  );
  return [{ path, command, options }, ...below];
}

/** Quotes a word for any of the three shells. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** The differences between bash and zsh. */
interface Dialect {
  /** Offers words, each with its description. */
  words(items: readonly (readonly [word: string, description: string])[]): string;
  readonly file: string;
  readonly directory: string;
}

const bash: Dialect = {
  words: (items) => `COMPREPLY+=($(compgen -W ${quoted(items.map(([word]) => word).join(' '))} -- "$current"))`,
  file: 'compopt -o filenames 2>/dev/null; COMPREPLY+=($(compgen -f -- "$current"))',
  directory: 'compopt -o filenames 2>/dev/null; COMPREPLY+=($(compgen -d -- "$current"))',
};

/** A colon ends the word. */
function describedWord([word, description]: readonly [word: string, description: string]): string {
  return quoted(description === '' ? word : `${word}:${description.replaceAll(':', String.raw`\:`)}`);
}

const zsh: Dialect = {
  words: (items) => `items=(${items.map(describedWord).join(' ')}); _describe -t values value items`,
  file: '_files',
  directory: '_files -/',
};

/** Returns the script for bash 4 and later. It joins the words that bash splits at `=`. */
function bashScript(root: CompletionCommand): string {
  return `${functionName(root)}() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" at= word= skip= count=0 i
  local IFS=$' \\t\\n'
  COMPREPLY=()
  [[ $current == '=' ]] && current=
  [[ $previous == '=' ]] && previous="\${COMP_WORDS[COMP_CWORD-2]}"
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="\${COMP_WORDS[i]}"
    [[ $word == '=' ]] && { skip=1; continue; }
${scan(root)}
  done
${offer(root, bash)}
}
complete -F ${functionName(root)} ${root.name}
`;
}

/** The script for zsh, as a file on \`fpath\` or sourced. */
function zshScript(root: CompletionCommand): string {
  const name = functionName(root);
  return `#compdef ${root.name}
${name}() {
  local current="\${words[CURRENT]}" previous="\${words[CURRENT-1]}" at= word= skip= count=0 i
  local -a items
  for ((i = 2; i < CURRENT; i++)); do
    word="\${words[i]}"
${scan(root)}
  done
${offer(root, zsh)}
}
if [ "\${funcstack[1]}" = ${quoted(name)} ]; then ${name} "$@"; else compdef ${name} ${root.name}; fi
`;
}

/** Follows the typed words: `at` is the command they lead to, `count` its arguments so far. */
function scan(root: CompletionCommand): string {
  const states = completionStates(root);
  const valued = states.flatMap((state) =>
    state.options
      .filter((option) => option.value !== null)
      .flatMap((option) => option.flags.map((flag) => quoted(`${state.path}|${flag}`))),
  );
  const steps = states.flatMap((state) =>
    state.command.commands.map(
      (child) => `      ${quoted(`${state.path}|${child.name}|0`)}) at=${quoted(pathBelow(state, child))} ;;`,
    ),
  );
  return `    if [[ -n $skip ]]; then skip=; continue; fi
    case "$at|$word" in
      ${valued.length === 0 ? "'|'" : valued.join('|')}) skip=1; continue ;;
    esac
    [[ $word == -* ]] && continue
    case "$at|$word|$count" in
${steps.join('\n')}
      *) count=$((count + 1)) ;;
    esac`;
}

function offer(root: CompletionCommand, dialect: Dialect): string {
  const states = completionStates(root);
  const values = states.flatMap((state) =>
    state.options.flatMap(({ flags, value }) =>
      value === null ? [] : [`    ${flagsAt(state, flags).join('|')}) ${valueWords(value, dialect)}; return ;;`],
    ),
  );
  return `  case "$at|$previous" in
${values.join('\n')}
  esac
  if [[ $current == -* ]]; then
    case "$at" in
${states.map((state) => `      ${quoted(state.path)}) ${dialect.words(describedFlags(state))} ;;`).join('\n')}
    esac
    return
  fi
  case "$at|$count" in
${states.flatMap((state) => positional(state, dialect)).join('\n')}
  esac`;
}

function describedFlags({ options }: CompletionState): readonly (readonly [word: string, description: string])[] {
  return options.flatMap(({ flags, description }) => flags.map((flag) => [flag, description] as const));
}

function flagsAt({ path }: CompletionState, flags: readonly string[]): readonly string[] {
  return flags.map((flag) => quoted(`${path}|${flag}`));
}

/** Returns the words that lead to a child of this command. */
function pathBelow({ path }: CompletionState, { name }: CompletionCommand): string {
  return path === '' ? name : `${path} ${name}`;
}

function positional({ path, command }: CompletionState, dialect: Dialect): readonly string[] {
  const commands = command.commands.map((child) => [child.name, child.description] as const);
  const args = command.args ?? [];
  const first = args[0] === undefined || args[0] === 'text' ? [] : [valueWords(args[0], dialect)];
  const atStart = [...(commands.length > 0 ? [dialect.words(commands)] : []), ...first];
  const later = args
    .slice(1)
    .map((value, index) => `    ${quoted(`${path}|${index + 1}`)}) ${valueWords(value, dialect)} ;;`);
  return [...(atStart.length > 0 ? [`    ${quoted(`${path}|0`)}) ${atStart.join('; ')} ;;`] : []), ...later];
}

function valueWords(value: CompletionValue, dialect: Dialect): string {
  if (value === 'text') return ':';
  if (value === 'file' || value === 'directory') return dialect[value];
  return dialect.words(value.map((word) => [word, ''] as const));
}

function functionName(root: CompletionCommand): string {
  return `_${root.name.replaceAll(/\W/g, '_')}`;
}

/** Returns the script for fish 3 and later. */
function fishScript(root: CompletionCommand): string {
  const states = completionStates(root);
  const name = `__${root.name.replaceAll(/\W/g, '_')}_at`;
  const valued = states.flatMap((state) =>
    state.options
      .filter((option) => option.value !== null)
      .flatMap((option) => option.flags.map((flag) => quoted(`${state.path}|${flag}`))),
  );
  const steps = states.flatMap((state) =>
    state.command.commands.map(
      (child) =>
        `            case ${quoted(`${state.path}|${child.name}|0`)}\n` +
        `                set at ${quoted(pathBelow(state, child))}`,
    ),
  );
  return `function ${name} --description 'whether the words so far lead to this command with this many arguments'
    set -l at ''
    set -l skip 0
    set -l count 0
    set -l typed (commandline -opc)
    set -e typed[1]
    for word in $typed
        if test $skip = 1
            set skip 0
            continue
        end
        switch "$at|$word"
            case ${valued.length === 0 ? "'|'" : valued.join(' ')}
                set skip 1
                continue
        end
        string match -q -- '-*' $word; and continue
        switch "$at|$word|$count"
${steps.join('\n')}
            case '*'
                set count (math $count + 1)
        end
    end
    test "$at" = "$argv[1]"; and begin
        test (count $argv) = 1; or test $count = $argv[2]
    end
end
complete -c ${root.name} -f
${states.flatMap((state) => lines(state, root.name, name)).join('\n')}
`;
}

function lines(state: CompletionState, program: string, name: string): readonly string[] {
  const here = (count?: number): string =>
    `complete -c ${program} -n ${quoted(`${name} ${quoted(state.path)}${count === undefined ? '' : ` ${count}`}`)}`;
  return [
    ...state.options.map(
      (option) =>
        [here(), flags(option), ...(option.value === null ? [] : [words(option.value)])].join(' ') +
        described(option.description),
    ),
    ...state.command.commands.map((child) => `${here(0)} -a ${quoted(child.name)}${described(child.description)}`),
    ...(state.command.args ?? []).flatMap((value, index) =>
      value === 'text' ? [] : [`${here(index)} ${words(value).replace(/^-[xr] /, '')}`],
    ),
  ];
}

function flags({ flags }: CompletionOption): string {
  return flags.map((flag) => (flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`)).join(' ');
}

function words(value: CompletionValue): string {
  if (value === 'text') return '-x';
  if (value === 'file') return '-r -F';
  return `-x -a ${value === 'directory' ? "'(__fish_complete_directories)'" : quoted(value.join(' '))}`;
}

function described(text: string): string {
  return text === '' ? '' : ` -d ${quoted(text)}`;
}

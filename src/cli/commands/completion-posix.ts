import {
  completionStates,
  quoted,
  type CompletionCommand,
  type CompletionState,
  type CompletionValue,
} from './completion-spec.js';

/** What differs between bash and zsh. */
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

const zsh: Dialect = {
  words: (items) =>
    `items=(${items.map(([word, description]) => quoted(description === '' ? word : `${word}:${description.replaceAll(':', String.raw`\:`)}`)).join(' ')}); _describe -t values value items`,
  file: '_files',
  directory: '_files -/',
};

/** The script for bash 4 and later. Words are split at `=` there, which is put right. */
export function bashScript(root: CompletionCommand): string {
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
export function zshScript(root: CompletionCommand): string {
  return `#compdef ${root.name}
${functionName(root)}() {
  local current="\${words[CURRENT]}" previous="\${words[CURRENT-1]}" at= word= skip= count=0 i
  local -a items
  for ((i = 2; i < CURRENT; i++)); do
    word="\${words[i]}"
${scan(root)}
  done
${offer(root, zsh)}
}
if [ "\${funcstack[1]}" = ${quoted(functionName(root))} ]; then ${functionName(root)} "$@"; else compdef ${functionName(root)} ${root.name}; fi
`;
}

/** Follows the words so far: `at` is the command they lead to, `count` the arguments it has got. */
function scan(root: CompletionCommand): string {
  const states = completionStates(root);
  const valued = states.flatMap((state) =>
    state.options
      .filter((option) => option.value !== null)
      .flatMap((option) => option.flags.map((flag) => quoted(`${state.path}|${flag}`))),
  );
  const steps = states.flatMap((state) =>
    state.command.commands.map(
      (child) =>
        `      ${quoted(`${state.path}|${child.name}|0`)}) at=${quoted(state.path === '' ? child.name : `${state.path} ${child.name}`)} ;;`,
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
      value === null
        ? []
        : [
            `    ${flags.map((flag) => quoted(`${state.path}|${flag}`)).join('|')}) ${valueWords(value, dialect)}; return ;;`,
          ],
    ),
  );
  return `  case "$at|$previous" in
${values.join('\n')}
  esac
  if [[ $current == -* ]]; then
    case "$at" in
${states.map((state) => `      ${quoted(state.path)}) ${dialect.words(state.options.flatMap((option) => option.flags.map((flag) => [flag, option.description] as const)))} ;;`).join('\n')}
    esac
    return
  fi
  case "$at|$count" in
${states.flatMap((state) => positional(state, dialect)).join('\n')}
  esac`;
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

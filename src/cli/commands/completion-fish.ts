import {
  completionStates,
  quoted,
  type CompletionCommand,
  type CompletionOption,
  type CompletionState,
  type CompletionValue,
} from './completion-spec.js';

/** The script for fish 3 and later. */
export function fishScript(root: CompletionCommand): string {
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
        `            case ${quoted(`${state.path}|${child.name}|0`)}\n                set at ${quoted(state.path === '' ? child.name : `${state.path} ${child.name}`)}`,
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
        `${here()} ${flags(option)}${option.value === null ? '' : ` ${words(option.value)}`}${described(option.description)}`,
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

import { change, danger } from './shell-findings.js';
import { installs, remoteSource } from './shell-installs.js';
import { runner } from './shell-npm.js';
import { parseOptions } from './shell-options.js';
import { asks, asksTool } from './shell-queries.js';
import { scriptFindings } from './shell-tasks.js';
import type { Arg, Finding, Handler, Invocation } from './shell-types.js';

export const packageHandlers: ReadonlyMap<string, Handler> = new Map<string, Handler>([
  ['uvx', runner],
  ['pipx', pipx],
  ['corepack', (call) => danger(call, 'installs programs')],
  ['lerna', lerna],
  ['vsce', published],
  ['ovsx', published],
  ['np', published],
  ['semantic-release', published],
  ['release-it', published],
  ['changeset', (call) => (verbOf(call) === 'publish' ? published(call) : change(call, 'changes files'))],
  ['goreleaser', published],
  ['twine', (call) => (verbOf(call) === 'upload' ? published(call) : change(call, 'checks packages'))],
  ['flit', published],
  ['hatch', hatch],
  ['poetry', poetry],
  ['pdm', poetry],
  ['pipenv', poetry],
  ['uv', uv],
  ['rye', poetry],
  ['pip', pip],
  ['pip3', pip],
  ['conda', pip],
  ['mamba', pip],
  ['gem', gem],
  ['bundle', bundle],
  ['bundler', bundle],
  ['cargo', cargo],
  ['go', go],
  ['composer', composer],
  ['mvn', maven],
  ['mvnw', maven],
  ['./mvnw', maven],
  ['gradle', maven],
  ['./gradlew', maven],
  ['dotnet', dotnet],
  [
    'mix',
    (call) =>
      /^(?:hex\.publish|ecto\.(?:drop|reset))$/.test(verbOf(call))
        ? danger(call, 'publishes or drops')
        : change(call, 'runs project code'),
  ],
  ['nuget', (call) => (verbOf(call) === 'push' ? published(call) : change(call, 'installs packages'))],
]);

function verbOf(call: Invocation): string {
  return call.args.find(({ text }) => !text.startsWith('-'))?.text ?? '';
}

function published(call: Invocation): readonly Finding[] {
  return danger(call, 'publishes');
}

/** `lerna exec` runs a command in each package. */
function lerna(call: Invocation): readonly Finding[] {
  const verb = verbOf(call);
  if (verb === 'publish') return published(call);
  const rest = after(call, verb);
  const dashes = rest.findIndex(({ text }) => text === '--');
  const command = rest.slice(dashes < 0 ? rest.findIndex(({ text }) => !text.startsWith('-')) >>> 0 : dashes + 1);
  const told = verb === 'run' ? scriptFindings(command[0]?.text ?? '', call) : [];
  const inner = verb === 'exec' ? call.argv(command) : told;
  return [...inner, ...change(call, 'runs project code')];
}

function pipx(call: Invocation): readonly Finding[] {
  return /^(?:list|environment)$/.test(verbOf(call)) ? [] : danger(call, 'fetches and runs or installs a package');
}

function pip(call: Invocation): readonly Finding[] {
  if (call.args.some(({ text }) => /^--python(?:=|$)/.test(text))) return danger(call, 'runs an interpreter of choice');
  const { operands } = parseOptions(call.args, '-r -c -e -n --requirement --constraint --editable --name --channel');
  const verb = operands[0]?.text ?? '';
  if (
    /^(?:list|show|freeze|check|help|inspect|info|env list|index versions)(?: |$)/.test(
      operands.map(({ text }) => text).join(' '),
    )
  )
    return asks(call);
  if (verb === 'config' || verb === 'run') return danger(call, 'changes settings or runs a program');
  if (verb === 'remove' && call.args.some(({ text }) => /^(?:-n|--name|--all|-p|--prefix)$/.test(text)))
    return danger(call, 'removes an environment');
  if (verb === 'uninstall' || verb === 'remove') return change(call, 'removes packages');
  const editable = call.args.some(
    ({ text }, index) =>
      /^(?:-r|-c|-e|--requirement|--editable)$/.test(call.args[index - 1]?.text ?? '') &&
      remoteSource.test(text) &&
      !/^\.?\/?[\w./-]*$/.test(text),
  );
  return editable
    ? danger(call, 'installs from an address')
    : installs(
        call,
        operands.slice(1).filter(({ text }) => text !== '.' && !text.startsWith('./')),
      );
}

function gem(call: Invocation): readonly Finding[] {
  const verb = verbOf(call);
  if (/^(?:list|search|info|which|environment|help|contents|specification)$/.test(verb)) return asks(call);
  return /^(?:push|yank|owner|signin|exec|sources|cert)$/.test(verb) ||
    call.args.some(({ text }) => text === '--system')
    ? danger(call, 'publishes or runs a package')
    : installs(call, []);
}

function bundle(call: Invocation): readonly Finding[] {
  return verbOf(call) === 'exec'
    ? [...call.argv(after(call, 'exec')), ...change(call, 'runs project code')]
    : verbOf(call) === 'config'
      ? danger(call, 'changes settings')
      : change(call, 'installs packages');
}

function after(call: Invocation, word: string): readonly Arg[] {
  return call.args.slice(call.args.findIndex(({ text }) => text === word) + 1);
}

function cargo(call: Invocation): readonly Finding[] {
  const verb = verbOf(call);
  const words = call.args.map(({ text }) => text);
  if (/^(?:publish|yank|login|logout|owner|install|uninstall)$/.test(verb))
    return danger(call, 'publishes, signs in or installs programs');
  if (call.args.some(({ text }) => /^--config|^--git\b/.test(text))) return danger(call, 'is given settings of choice');
  const reads =
    /^(?:tree|metadata|pkgid|locate-project|read-manifest|search|info|help|version|verify-project)$/.test(verb) ||
    words.every((text) => /^(?:--list|-V|-vV|--version)$/.test(text));
  if (reads && !words.some((text) => /^(?:--registry|--index|-C|--manifest-path|\+|-Z)/.test(text))) {
    return asksTool(call);
  }
  return change(call, 'builds and runs project code');
}

function go(call: Invocation): readonly Finding[] {
  const verb = verbOf(call);
  const words = call.args.map(({ text }) => text);
  if (verb === 'env') return words.some((text) => /^-[wu]/.test(text)) ? danger(call, 'changes settings of go') : [];
  const choice = goRuns(verb, words);
  if (choice !== null) return danger(call, choice);
  const reads =
    /^(?:list|doc|version)$/.test(verb) ||
    /^mod (?:graph|why)\b/.test(words.join(' ')) ||
    (verb === 'tool' && words.length === 1);
  if (reads && !words.some((text) => /^-{1,2}(?:export|compiled|mod|modfile|C|pkgdir|http)\b/.test(text)))
    return asks(call);
  return change(call, 'builds and runs project code');
}

/** Why a command of go runs more than the project, or null. */
function goRuns(verb: string, words: readonly string[]): string | null {
  if (words.some((text) => /^-{1,2}(?:toolexec|exec|overlay|vettool)|-extld\b|-linkmode[= ]external/.test(text)))
    return 'runs a program of choice';
  if (verb === 'run' && words.some((text) => /^-$|^\/dev\/|^\/proc\//.test(text)))
    return 'runs what it is sent as a program';
  return /^(?:run|install)$/.test(verb) && words.some((text) => text.includes('@'))
    ? 'fetches and runs or installs a program'
    : null;
}

function composer(call: Invocation): readonly Finding[] {
  return /^(?:global|config|exec|run-script|create-project)$/.test(verbOf(call))
    ? danger(call, 'changes settings or runs a package')
    : change(call, 'installs packages');
}

function maven(call: Invocation): readonly Finding[] {
  const words = call.args.map(({ text }) => text);
  if (words.some((text) => /^(?:deploy|release:.*|publish\w*|exec:\w+)$/.test(text)))
    return danger(call, 'publishes or runs a program');
  return words.some((text) => /^(?:-I|--init-script|-s|--settings|-gs|-b|-c)$/.test(text))
    ? danger(call, 'is given settings of choice')
    : change(call, 'builds and runs project code');
}

function dotnet(call: Invocation): readonly Finding[] {
  if (/^--(?:info|list-sdks|list-runtimes)$/.test(call.args[0]?.text ?? '')) return asksTool(call);
  return /\b(?:nuget push|tool (?:install|run)|publish --to|ef database drop)\b/.test(
    call.args.map(({ text }) => text).join(' '),
  )
    ? danger(call, 'publishes, installs or drops')
    : change(call, 'builds and runs project code');
}

function hatch(call: Invocation): readonly Finding[] {
  return verbOf(call) === 'publish' ? published(call) : change(call, 'runs project code');
}

function poetry(call: Invocation): readonly Finding[] {
  const verb = verbOf(call);
  const words = call.args.map(({ text }) => text).join(' ');
  const reads = /^(?:show|about|check)$/.test(verb) || words === 'version' || /^env (?:info|list)/.test(words);
  if (call.name === 'poetry' && reads) return asksTool(call);
  if (verb === 'run' || verb === 'exec') return [...call.argv(after(call, verb)), ...change(call, 'runs project code')];
  if (/^(?:publish|config|self|source|plugin)$/.test(verb)) return danger(call, 'publishes or changes settings');
  return verb === 'add' || verb === 'install'
    ? installs(
        call,
        after(call, verb).filter(({ text }) => !text.startsWith('-')),
      )
    : change(call, 'changes the project');
}

function uv(call: Invocation): readonly Finding[] {
  const verb = verbOf(call);
  if (verb === 'pip') {
    const inner = call.argv(call.args.slice(call.args.findIndex(({ text }) => text === 'pip')));
    return inner.length > 0 ? inner : asksTool(call, 'venv');
  }
  if (verb === 'tool' || verb === 'publish' || verb === 'self')
    return danger(call, 'fetches, installs or publishes a program');
  if (verb === 'run' && call.args.some(({ text }) => /^--(?:with|from)/.test(text)))
    return danger(call, 'fetches and runs a package');
  return poetry(call);
}

import { type Arg, change, danger, type Finding, type Invocation, parseOptions, type Code } from './invocation.js';
import { scriptFindings, taskFindings } from './project-scripts.js';
import { asks, asksTool } from './steering-files.js';
import { shellText } from './wrappers.js';

export const packageCodes: Readonly<Record<string, Code>> = {
  bundle,
  cargo,
  go,
  installs: (call) => installs(call, []),
  lerna,
  pip,
  poetry,
  uv,
};

function verbOf(call: Invocation): string {
  return call.args.find(({ text }) => !text.startsWith('-'))?.text ?? '';
}

/** `lerna exec` runs a command in each package. */
function lerna(call: Invocation): readonly Finding[] {
  const verb = verbOf(call);
  if (verb === 'publish') return danger(call, 'publishes');
  const rest = after(call, verb);
  const dashes = rest.findIndex(({ text }) => text === '--');
  const command = rest.slice(dashes < 0 ? rest.findIndex(({ text }) => !text.startsWith('-')) >>> 0 : dashes + 1);
  const told = verb === 'run' ? scriptFindings(command[0]?.text ?? '', call) : [];
  const inner = verb === 'exec' ? call.argv(command) : told;
  return [...inner, ...change(call, 'runs project code')];
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

export const npmCodes: Readonly<Record<string, Code>> = { bun, npm, runner };

const npmDangerous =
  /^(?:publish|unpublish|deprecate|undeprecate|owner|author|access|token|login|adduser|add-user|logout|dist-tag|dist-tags|team|org|hook|profile|star|unstar|stage|trust|dlx|create|link|ln|explore|edit)$/;

function npm(call: Invocation): readonly Finding[] {
  const { operands } = parseOptions(
    call.args,
    '-w --workspace -C --cwd --prefix --dir --filter --registry --cache --userconfig --script-shell -c --call -p --package',
  );
  const verb = operands[0]?.text ?? '';
  const words = call.args.map(({ text }) => text);
  if (
    words.some((text) =>
      /^--(?:script-shell|node-options|userconfig|globalconfig|init-module|git|editor|viewer|shell|onload-script|prefix)\b/.test(
        text,
      ),
    )
  )
    return danger(call, 'is given settings of choice');
  if (npmDangerous.test(verb) || (verb === 'npm' && words.some((text) => npmDangerous.test(text) || text === 'tag')))
    return danger(call, 'publishes, signs in, links or runs another package');
  return npmVerb(verb, operands, words, call);
}

function npmVerb(
  verb: string,
  operands: readonly Arg[],
  words: readonly string[],
  call: Invocation,
): readonly Finding[] {
  if (/^(?:exec|x)$/.test(verb))
    return runner({ ...call, args: call.args.slice(call.args.findIndex(({ text }) => text === verb) + 1) });
  if (/^(?:config|c|set|get)$/.test(verb))
    return npmConfig(
      operands.map(({ text }) => text),
      call,
    );
  if (/^(?:init|innit)$/.test(verb) && operands.length > 1) return danger(call, 'fetches and runs a package');
  if (/^(?:i|install|add|in|ins|inst|isntall|update|up|upgrade|ci|clean-install|install-test|it)$/.test(verb))
    return installs(call, operands.slice(1));
  if (onlyAsks(verb, words, call)) return asksTool(call);
  if (verb === 'pkg') return packageFile(operands, call);
  return projectScript(verb, operands, call);
}

function projectScript(verb: string, operands: readonly Arg[], call: Invocation): readonly Finding[] {
  const told = scriptFindings(/^(?:run|run-script|rum|urn)$/.test(verb) ? (operands[1]?.text ?? '') : verb, call);
  if (told.length > 0) return told;
  return verb === 'global'
    ? danger(call, 'installs outside the project')
    : change(call, 'runs project code or uses the network');
}

function onlyAsks(verb: string, words: readonly string[], call: Invocation): boolean {
  if (/^(?:ls|list|ll|la|explain|why|root|prefix|bin|help|fund|query)$/.test(verb)) return true;
  if (verb === 'workspaces') return /^(?:list|info)$/.test(words[1] ?? '');
  if (/^(?:run|run-script)$/.test(verb)) return words.length === 1 && call.name !== 'yarn';
  return (
    /^(?:outdated|view|v|info|show|audit|search|find|ping|whoami|licenses)$/.test(verb) &&
    !words.some((text) => /^(?:fix|--fix|signatures|--registry|--cache)\b/.test(text))
  );
}

/** `npm pkg set scripts.x=…` decides what later commands run. */
function packageFile(operands: readonly Arg[], call: Invocation): readonly Finding[] {
  if (operands[1]?.text === 'get') return asksTool(call);
  return operands.some(({ text }) => /^(?:scripts|bin|dependencies|overrides|publishConfig)\b.*=/.test(text))
    ? danger(call, 'changes what the project runs')
    : change(call, 'changes the package file');
}

function npmConfig(words: readonly string[], call: Invocation): readonly Finding[] {
  const [first, second] = words;
  if (first === 'get' || (second === 'get' && words.length > 2))
    return words.some((word) => /auth|token|password/i.test(word)) ? danger(call, 'prints tokens') : asksTool(call);
  if (/^(?:yarn|pnpm)$/.test(call.name) && /^(?:list|ls)$/.test(second ?? '')) return danger(call, 'prints tokens');
  return second === 'list' || second === 'ls' ? asksTool(call) : danger(call, 'changes settings of npm');
}

function bun(call: Invocation): readonly Finding[] {
  const verb = call.args.find(({ text }) => !text.startsWith('-'))?.text ?? '';
  if (verb === 'upgrade') return danger(call, 'replaces a program of the machine');
  if (verb === 'x' || verb === 'create')
    return verb === 'x' ? runner({ ...call, args: call.args.slice(1) }) : danger(call, 'fetches and runs a package');
  if (call.args.some(({ text }) => /^(?:-e|--eval|-p|--print|-r|--preload)/.test(text)))
    return danger(call, 'runs code that is not analysed');
  return npm(call);
}

/** Tools that projects install for themselves. Any other name may be fetched and run on the spot. */
const localTools = new Set(
  'tsc tsserver eslint prettier vitest jest mocha ava tap c8 nyc tsx ts-node vite vue-tsc svelte-check next nuxt astro webpack rollup esbuild tsup swc babel oxlint biome knip depcheck turbo nx playwright cypress storybook tailwindcss postcss stylelint husky lint-staged commitlint prisma drizzle-kit typedoc tsd size-limit remark markdownlint rome parcel gulp grunt ng ruff black mypy pytest isort flake8 pyright pre-commit tox nox'.split(
    ' ',
  ),
);

function runner(call: Invocation): readonly Finding[] {
  const { args } = call;
  const words = args.map(({ text }) => text);
  const at = words.findIndex((text) => !text.startsWith('-'));
  const own = words.slice(0, at < 0 ? words.length : at);
  const code = own.findIndex((text) => text === '-c' || text === '--call');
  if (code >= 0)
    return [...shellText(args.slice(code + 1, code + 2), call), ...danger(call, 'fetches packages and runs a text')];
  if (own.some((text) => /^(?:-p|--package|--from|--with|--index-url|--registry)(?:=|$)/.test(text)))
    return danger(call, 'fetches and runs a package');
  const tool = args[at];
  if (!tool) return change(call, 'runs a tool of the project');
  if (tool.dynamic || !localTools.has(tool.text)) return danger(call, 'fetches and runs a package');
  const drops = /^(?:prisma db push .*--(?:force-reset|accept-data-loss)|drizzle-kit drop)/.test(
    words.slice(at).join(' '),
  );
  return drops
    ? danger(call, 'drops data')
    : [...taskFindings(call, words.slice(at + 1)), ...change(call, 'runs a tool of the project')];
}

/** A package that is named by where it lies instead of by its name in a registry. */
const remoteSource =
  /^(?:https?:|git[+:@]|ssh:|github:|gitlab:|bitbucket:|gist:|file:|svn\+|hg\+|bzr\+)|^[\w.-]+\/[\w.-]+(?:#.*)?$|\.(?:tgz|tar\.gz|whl)$|^\/|^\.\.\/|@(?:https?:|git[+:]|npm:|file:)/;

/** Packages of a name come from the registry that the project chose; addresses, other registries and global installs do
 * not. */
function installs(call: Invocation, names: readonly Arg[]): readonly Finding[] {
  const words = call.args.map(({ text }) => text);
  if (call.args.some((arg) => arg.dynamic || arg.substitution !== 'none'))
    return danger(call, 'installs what is known only when it runs');
  const address = names.find(({ text }) => remoteSource.test(text) && !/^@[\w.-]+\/[\w.-]+/.test(text));
  if (address) return danger(call, `installs from ${address.text}`);
  if (
    words.some(
      (text) =>
        /^(?:-g|--global|--location=global|--registry|--index-url|--extra-index-url|--trusted-host|--find-links|--source|--break-system-packages|--user|--user-install|--target|--prefix|--root|--install-dir|--bindir|-i|-t|-c|--channel|-s)(?:=|$)/.test(
          text,
        ) &&
        !(text === '-s' && call.name !== 'gem') &&
        !(text === '-c' && !/^(?:conda|mamba)$/.test(call.name)) &&
        !(text === '-i' && call.name === 'npm') &&
        !(text === '-t' && call.name === 'cargo'),
    )
  )
    return danger(call, 'installs outside the project or from another registry');
  return change(call, 'installs packages, which may run code');
}

export const systemPackageCodes: Readonly<Record<string, Code>> = { systemPackages };

const questions =
  /^(?:list|search|show|info|policy|depends|rdepends|uses|-l|-L|-s|-S|-p|-q\w*|--list|--listfiles|--status|--search|-Q\w*|-Ss|-Si|--query|outdated|deps|config|doctor|leaves|--prefix|--print-architecture|-W|why|find|history|provides|whatprovides|repoquery|repolist|version|desc|cat|changelog|changes|services list)$/;

function systemPackages(call: Invocation): readonly Finding[] {
  const words = call.args.map(({ text }) => text);
  if (
    words.some((text) =>
      /^--(?:root|dbpath|installroot|config-file|repofrompath|eval|define|pipe|load|macros|rcfile|setopt|config|hookdir)|^-[ocDE]|^-q\w*[DE]|^--fix$/.test(
        text,
      ),
    )
  )
    return danger(call, 'is given settings of choice');
  return words.length === 0 || isQuestion(call.name, words)
    ? asks(call)
    : danger(call, 'changes the programs of the machine');
}

/** Some take the question as an option, and `-S` is to install for pacman and to search for dpkg. */
function isQuestion(name: string, words: readonly string[]): boolean {
  const first = words[0] ?? '';
  const verb = words.find((text) => !text.startsWith('-')) ?? '';
  if (/^(?:rpm|dpkg|pacman|rpmquery)$/.test(name) || first === '--prefix')
    return name === 'rpmquery' || (questions.test(first) && !(name === 'pacman' && first === '-S'));
  return questions.test(verb);
}

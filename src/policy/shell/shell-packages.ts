import { change, danger } from './shell-findings.js';
import { parseOptions } from './shell-options.js';
import { shellText } from './shell-wrappers.js';
import type { Arg, Finding, Handler, Invocation } from './shell-types.js';

export const packageHandlers: ReadonlyMap<string, Handler> = new Map<string, Handler>([
  ['npm', npm], ['pnpm', npm], ['yarn', npm], ['bun', bun], ['cnpm', npm], ['npx', runner], ['pnpx', runner], ['bunx', runner], ['uvx', runner], ['pipx', pipx], ['corepack', (call) => danger(call, 'installs programs')], ['lerna', (call) => (verbOf(call) === 'publish' ? danger(call, 'publishes') : change(call, 'runs project code'))], ['vsce', published], ['ovsx', published], ['np', published], ['semantic-release', published], ['release-it', published], ['changeset', (call) => (verbOf(call) === 'publish' ? published(call) : change(call, 'changes files'))], ['goreleaser', published], ['twine', (call) => (verbOf(call) === 'upload' ? published(call) : change(call, 'checks packages'))], ['flit', published], ['hatch', hatch], ['poetry', poetry], ['pdm', poetry], ['pipenv', poetry], ['uv', uv], ['rye', poetry],
  ['pip', pip], ['pip3', pip], ['conda', pip], ['mamba', pip], ['gem', gem], ['bundle', bundle], ['bundler', bundle], ['cargo', cargo], ['go', go], ['composer', composer], ['mvn', maven], ['mvnw', maven], ['./mvnw', maven], ['gradle', maven], ['./gradlew', maven], ['dotnet', dotnet], ['mix', (call) => (/^(?:hex\.publish|ecto\.(?:drop|reset))$/.test(verbOf(call)) ? danger(call, 'publishes or drops') : change(call, 'runs project code'))], ['nuget', (call) => (verbOf(call) === 'push' ? published(call) : change(call, 'installs packages'))],
  ...['apt', 'apt-get', 'aptitude', 'apt-key', 'add-apt-repository', 'yum', 'dnf', 'zypper', 'pacman', 'yay', 'apk', 'emerge', 'xbps-install', 'snap', 'flatpak', 'brew', 'port', 'choco', 'winget', 'scoop', 'nix-env', 'nix', 'guix', 'rpm', 'dpkg', 'softwareupdate', 'mas'].map((name): [string, Handler] => [name, systemPackages]),
]);

function verbOf(call: Invocation): string {
  return call.args.find(({ text }) => !text.startsWith('-'))?.text ?? '';
}

function published(call: Invocation): readonly Finding[] {
  return danger(call, 'publishes');
}

const remote = /^(?:https?:|git[+:@]|ssh:|github:|gitlab:|bitbucket:|gist:|file:|svn\+|hg\+|bzr\+)|^[\w.-]+\/[\w.-]+(?:#.*)?$|\.(?:tgz|tar\.gz|whl)$|^\/|^\.\.\/|@(?:https?:|git[+:]|npm:|file:)/;

/** Packages of a name come from the registry that the project chose; addresses, other registries and global installs do not. */
function installs(call: Invocation, names: readonly Arg[]): readonly Finding[] {
  const words = call.args.map(({ text }) => text);
  if (call.args.some((arg) => arg.dynamic || arg.substitution !== 'none')) return danger(call, 'installs what is known only when it runs');
  const address = names.find(({ text }) => remote.test(text) && !/^@[\w.-]+\/[\w.-]+/.test(text));
  if (address) return danger(call, `installs from ${address.text}`);
  if (words.some((text) => /^(?:-g|--global|--location=global|--registry|--index-url|--extra-index-url|--trusted-host|--find-links|--source|--break-system-packages|--user|--user-install|--target|--prefix|--root|-i|-t)(?:=|$)/.test(text) && !(text === '-i' && call.name === 'npm') && !(text === '-t' && call.name === 'cargo'))) return danger(call, 'installs outside the project or from another registry');
  return change(call, 'installs packages, which may run code');
}

const npmDangerous = /^(?:publish|unpublish|deprecate|undeprecate|owner|author|access|token|login|adduser|add-user|logout|dist-tag|dist-tags|team|org|hook|profile|star|unstar|stage|trust|dlx|create|link|ln|explore|edit)$/;

function npm(call: Invocation): readonly Finding[] {
  const { operands } = parseOptions(call.args, '-w --workspace -C --prefix --dir --filter --registry --cache --userconfig --script-shell -c --call -p --package');
  const verb = operands[0]?.text ?? '';
  const words = call.args.map(({ text }) => text);
  if (words.some((text) => /^--(?:script-shell|node-options|userconfig|globalconfig|init-module|git|editor|viewer|shell|onload-script|prefix)\b/.test(text))) return danger(call, 'is given settings of choice');
  if (npmDangerous.test(verb) || (verb === 'npm' && words.includes('publish'))) return danger(call, 'publishes, signs in, links or runs another package');
  return npmVerb(verb, operands, words, call);
}

function npmVerb(verb: string, operands: readonly Arg[], words: readonly string[], call: Invocation): readonly Finding[] {
  if (/^(?:exec|x)$/.test(verb)) return runner({ ...call, args: after(call, verb) });
  if (/^(?:config|c|set|get)$/.test(verb)) return npmConfig(operands.map(({ text }) => text), call);
  if (/^(?:init|innit)$/.test(verb)) return operands.length > 1 ? danger(call, 'fetches and runs a package') : change(call, 'makes a package file');
  if (/^(?:i|install|add|in|ins|inst|isntall|update|up|upgrade|ci|clean-install|install-test|it)$/.test(verb)) return installs(call, operands.slice(1));
  if (/^(?:ls|list|ll|la|explain|why|root|prefix|bin|help|fund|query)$/.test(verb) && !words.includes('-g')) return [];
  return verb === 'global' ? danger(call, 'installs outside the project') : change(call, 'runs project code or uses the network');
}

function npmConfig(words: readonly string[], call: Invocation): readonly Finding[] {
  const [first, second] = words;
  if (first === 'get' || (second === 'get' && words.length > 2)) return words.some((word) => /auth|token|password/i.test(word)) ? danger(call, 'prints tokens') : [];
  return second === 'list' || second === 'ls' ? change(call, 'prints settings') : danger(call, 'changes settings of npm');
}

function bun(call: Invocation): readonly Finding[] {
  const verb = verbOf(call);
  if (verb === 'x' || verb === 'create') return verb === 'x' ? runner({ ...call, args: call.args.slice(1) }) : danger(call, 'fetches and runs a package');
  if (call.args.some(({ text }) => /^(?:-e|--eval|-p|--print|-r|--preload)/.test(text))) return danger(call, 'runs code that is not analysed');
  return npm(call);
}

/** Tools that projects install for themselves. Any other name may be fetched and run on the spot. */
const localTools = new Set('tsc tsserver eslint prettier vitest jest mocha ava tap c8 nyc tsx ts-node vite vue-tsc svelte-check next nuxt astro webpack rollup esbuild tsup swc babel oxlint biome knip depcheck turbo nx playwright cypress storybook tailwindcss postcss stylelint husky lint-staged commitlint prisma drizzle-kit typedoc tsd size-limit remark markdownlint rome parcel gulp grunt ng ruff black mypy pytest isort flake8 pyright pre-commit tox nox'.split(' '));

function runner(call: Invocation): readonly Finding[] {
  const { args } = call;
  const words = args.map(({ text }) => text);
  const code = words.findIndex((text) => text === '-c' || text === '--call');
  if (code >= 0) return [...shellText(args.slice(code + 1, code + 2), call), ...danger(call, 'fetches packages and runs a text')];
  if (words.some((text) => /^(?:-p|--package|--from|--with|--index-url|--registry)(?:=|$)/.test(text))) return danger(call, 'fetches and runs a package');
  const at = words.findIndex((text) => !text.startsWith('-'));
  const tool = args[at];
  if (!tool) return change(call, 'runs a tool of the project');
  if (tool.dynamic || !localTools.has(tool.text)) return danger(call, 'fetches and runs a package');
  const drops = words.slice(at).join(' ');
  return /prisma (?:migrate reset|db push .*--(?:force-reset|accept-data-loss))|drizzle-kit drop/.test(drops) ? danger(call, 'drops data') : change(call, 'runs a tool of the project');
}

function pipx(call: Invocation): readonly Finding[] {
  return /^(?:list|environment)$/.test(verbOf(call)) ? [] : danger(call, 'fetches and runs or installs a package');
}

function pip(call: Invocation): readonly Finding[] {
  const { operands } = parseOptions(call.args, '-r -c -e -n --requirement --constraint --editable --name --channel');
  const verb = operands[0]?.text ?? '';
  if (/^(?:list|show|freeze|check|help|inspect|info)$/.test(verb)) return [];
  if (verb === 'config' || verb === 'run') return danger(call, 'changes settings or runs a program');
  if (verb === 'uninstall' || verb === 'remove') return change(call, 'removes packages');
  const editable = call.args.some(({ text }, index) => /^(?:-r|-c|-e|--requirement|--editable)$/.test(call.args[index - 1]?.text ?? '') && remote.test(text) && !/^\.?\/?[\w./-]*$/.test(text));
  return editable ? danger(call, 'installs from an address') : installs(call, operands.slice(1).filter(({ text }) => text !== '.' && !text.startsWith('./')));
}

function gem(call: Invocation): readonly Finding[] {
  const verb = verbOf(call);
  if (/^(?:list|search|info|which|environment|help|contents|specification)$/.test(verb)) return change(call, 'asks for packages');
  return /^(?:push|yank|owner|signin|exec|sources|cert)$/.test(verb) ? danger(call, 'publishes or runs a package') : installs(call, []);
}

function bundle(call: Invocation): readonly Finding[] {
  return verbOf(call) === 'exec' ? [...call.argv(after(call, 'exec')), ...change(call, 'runs project code')] : verbOf(call) === 'config' ? danger(call, 'changes settings') : change(call, 'installs packages');
}

function after(call: Invocation, word: string): readonly Arg[] {
  return call.args.slice(call.args.findIndex(({ text }) => text === word) + 1);
}

function cargo(call: Invocation): readonly Finding[] {
  const verb = verbOf(call);
  if (/^(?:publish|yank|login|logout|owner|install|uninstall)$/.test(verb)) return danger(call, 'publishes, signs in or installs programs');
  return call.args.some(({ text }) => /^--config|^--git\b/.test(text)) ? danger(call, 'is given settings of choice') : change(call, 'builds and runs project code');
}

function go(call: Invocation): readonly Finding[] {
  const verb = verbOf(call);
  const words = call.args.map(({ text }) => text);
  if (verb === 'env') return words.some((text) => /^-[wu]/.test(text)) ? danger(call, 'changes settings of go') : [];
  if (words.some((text) => /^-{1,2}(?:toolexec|exec|overlay|vettool|ldflags=.*-extld)/.test(text))) return danger(call, 'runs a program of choice');
  if (/^(?:run|install)$/.test(verb) && words.some((text) => text.includes('@'))) return danger(call, 'fetches and runs or installs a program');
  return change(call, 'builds and runs project code');
}

function composer(call: Invocation): readonly Finding[] {
  return /^(?:global|config|exec|run-script|create-project)$/.test(verbOf(call)) ? danger(call, 'changes settings or runs a package') : change(call, 'installs packages');
}

function maven(call: Invocation): readonly Finding[] {
  const words = call.args.map(({ text }) => text);
  if (words.some((text) => /^(?:deploy|release:.*|publish\w*|exec:\w+)$/.test(text))) return danger(call, 'publishes or runs a program');
  return words.some((text) => /^(?:-I|--init-script|-s|--settings|-gs|-b|-c)$/.test(text)) ? danger(call, 'is given settings of choice') : change(call, 'builds and runs project code');
}

function dotnet(call: Invocation): readonly Finding[] {
  return /\b(?:nuget push|tool (?:install|run)|publish --to|ef database drop)\b/.test(call.args.map(({ text }) => text).join(' ')) ? danger(call, 'publishes, installs or drops') : change(call, 'builds and runs project code');
}

function hatch(call: Invocation): readonly Finding[] {
  return verbOf(call) === 'publish' ? published(call) : change(call, 'runs project code');
}

function poetry(call: Invocation): readonly Finding[] {
  const verb = verbOf(call);
  if (verb === 'run' || verb === 'exec') return [...call.argv(after(call, verb)), ...change(call, 'runs project code')];
  if (/^(?:publish|config|self|source|plugin)$/.test(verb)) return danger(call, 'publishes or changes settings');
  return verb === 'add' || verb === 'install' ? installs(call, after(call, verb).filter(({ text }) => !text.startsWith('-'))) : change(call, 'changes the project');
}

function uv(call: Invocation): readonly Finding[] {
  const verb = verbOf(call);
  if (verb === 'pip') return call.argv(call.args.slice(call.args.findIndex(({ text }) => text === 'pip')));
  if (verb === 'tool' || verb === 'publish' || verb === 'self') return danger(call, 'fetches, installs or publishes a program');
  if (verb === 'run' && call.args.some(({ text }) => /^--(?:with|from)/.test(text))) return danger(call, 'fetches and runs a package');
  return poetry(call);
}

function systemPackages(call: Invocation): readonly Finding[] {
  const words = call.args.map(({ text }) => text);
  const asks = /^(?:list|search|show|info|policy|depends|-l|-L|-s|-S|-q\w*|--list|-Q\w*|-Ss|-Si|--query|home|outdated|deps|config|doctor|leaves|--prefix|--print-architecture|-W|why|find)$/;
  if (words[0] === undefined || (asks.test(words[0]) && !(call.name === 'pacman' && words[0] === '-S') && !(call.name === 'nix' && words[0] === '-S'))) return change(call, 'asks for packages');
  return danger(call, 'changes the programs of the machine');
}

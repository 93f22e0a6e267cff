import { change, danger } from './shell-findings.js';
import { installs } from './shell-installs.js';
import { parseOptions } from './shell-options.js';
import { asksTool } from './shell-queries.js';
import { scriptFindings, taskFindings } from './shell-tasks.js';
import { shellText } from './shell-wrappers.js';
import type { Arg, Finding, Handler, Invocation } from './shell-types.js';

export const npmHandlers: ReadonlyMap<string, Handler> = new Map<string, Handler>([
  ['npm', npm],
  ['pnpm', npm],
  ['yarn', npm],
  ['bun', bun],
  ['cnpm', npm],
  ['npx', runner],
  ['pnpx', runner],
  ['bunx', runner],
]);

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

export function runner(call: Invocation): readonly Finding[] {
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

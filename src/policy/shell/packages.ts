import wordLists from '../../../config/commands/words.json' with { type: 'json' };
import { shellText } from './builtins-and-wrappers.js';
import {
  type Arg,
  change,
  type Code,
  danger,
  either,
  type Finding,
  type Invocation,
  type Options,
  type Program,
  type Test,
} from './invocation.js';
import { scriptFindings, taskFindings } from './simple-command.js';
import { asksTool } from './steering-files.js';

/** What the tables of package managers cannot say. */
export const packageCodes: Readonly<Record<string, Code>> = {
  behindVerb,
  installs: (call) => installs(call, []),
  installsFiles,
  installsNames,
  installsOperands: (call, _program, { operands }) => installs(call, operands.slice(1)),
  lerna,
  npmConfig,
  npmExec,
  projectScript,
  runner,
  uvPip,
};
export const packageTests: Readonly<Record<string, Test>> = { queriesFile };

/** `rpm -q…E` and `-q…D` evaluate a text. */
function queriesFile(call: Invocation): boolean {
  return call.args.some(({ text }) => /^-q\w*[DE]/.test(text));
}

function after(call: Invocation, word: string): readonly Arg[] {
  return call.args.slice(call.args.findIndex(({ text }) => text === word) + 1);
}

function verbOf(call: Invocation): string {
  return call.args.find(({ text }) => !text.startsWith('-'))?.text ?? '';
}

/** `bundle exec`, `poetry run`: the words behind are a command. */
function behindVerb(call: Invocation): readonly Finding[] {
  return call.argv(after(call, verbOf(call)));
}

/** `lerna exec` runs a command in each package. */
function lerna(call: Invocation): readonly Finding[] {
  const verb = verbOf(call);
  const rest = after(call, verb);
  const dashes = rest.findIndex(({ text }) => text === '--');
  const command = rest.slice(dashes < 0 ? rest.findIndex(({ text }) => !text.startsWith('-')) >>> 0 : dashes + 1);
  return verb === 'run' ? scriptFindings(command[0]?.text ?? '', call) : call.argv(command);
}

/** Packages by name, or files and addresses that list them. */
function installsFiles(call: Invocation, _program: Program, { operands }: Options): readonly Finding[] {
  const listed = call.args.filter((_arg, index) =>
    /^(?:-r|-c|-e|--requirement|--editable)$/.test(call.args[index - 1]?.text ?? ''),
  );
  if (listed.some(({ text }) => remoteSource.test(text) && !/^\.?\/?[\w./-]*$/.test(text)))
    return danger(call, 'installs from an address');
  return installs(
    call,
    operands.slice(1).filter(({ text }) => text !== '.' && !text.startsWith('./')),
  );
}

function installsNames(call: Invocation): readonly Finding[] {
  return installs(
    call,
    after(call, verbOf(call)).filter(({ text }) => !text.startsWith('-')),
  );
}

function uvPip(call: Invocation): readonly Finding[] {
  const inner = call.argv(call.args.slice(call.args.findIndex(({ text }) => text === 'pip')));
  return inner.length > 0 ? inner : asksTool(call, 'venv');
}

function npmExec(call: Invocation, _program: Program, { operands }: Options): readonly Finding[] {
  return runner({ ...call, args: after(call, operands[0]?.text ?? '') });
}

function projectScript(call: Invocation, _program: Program, { operands }: Options): readonly Finding[] {
  const verb = operands[0]?.text ?? '';
  const told = scriptFindings(/^(?:run|run-script|rum|urn)$/.test(verb) ? (operands[1]?.text ?? '') : verb, call);
  return told.length > 0 ? told : change(call, 'runs project code or uses the network');
}

function npmConfig(call: Invocation, _program: Program, { operands }: Options): readonly Finding[] {
  const words = operands.map(({ text }) => text);
  const [first, second] = words;
  if (first === 'get' || (second === 'get' && words.length > 2))
    return words.some((word) => /auth|token|password/i.test(word)) ? danger(call, 'prints tokens') : asksTool(call);
  if (/^(?:yarn|pnpm)$/.test(call.name) && /^(?:list|ls)$/.test(second ?? '')) return danger(call, 'prints tokens');
  return second === 'list' || second === 'ls' ? asksTool(call) : danger(call, 'changes settings of npm');
}

/** Tools that projects install for themselves. Any other name may be fetched and run on the spot. */
const localTools = new Set(wordLists.lists.projectTools);

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
const remoteSource = new RegExp(
  [
    '^(?:https?:|git[+:@]|ssh:|github:|gitlab:|bitbucket:|gist:|file:|svn\\+|hg\\+|bzr\\+)',
    '^[\\w.-]+/[\\w.-]+(?:#.*)?$|\\.(?:tgz|tar\\.gz|whl)$|^/|^\\.\\./|@(?:https?:|git[+:]|npm:|file:)',
  ].join('|'),
);

const otherRegistry = new RegExp(`^(?:${either(wordLists.lists.otherRegistry)})(?:=|$)`);

/** Letters that mean another registry or folder to one package manager, and something else to the others. */
function isOwnMeaning(text: string, name: string): boolean {
  return (
    (text === '-s' && name !== 'gem') ||
    (text === '-c' && !/^(?:conda|mamba)$/.test(name)) ||
    (text === '-i' && name === 'npm') ||
    (text === '-t' && name === 'cargo')
  );
}

/** Packages of a name come from the registry that the project chose; addresses, other registries and global installs do
 * not. */
function installs(call: Invocation, names: readonly Arg[]): readonly Finding[] {
  const words = call.args.map(({ text }) => text);
  if (call.args.some((arg) => arg.dynamic || arg.substitution !== 'none'))
    return danger(call, 'installs packages that are known only when it runs');
  const address = names.find(({ text }) => remoteSource.test(text) && !/^@[\w.-]+\/[\w.-]+/.test(text));
  if (address) return danger(call, `installs from ${address.text}`);
  if (words.some((text) => otherRegistry.test(text) && !isOwnMeaning(text, call.name)))
    return danger(call, 'installs outside the project or from another registry');
  return change(call, 'installs packages, which may run code');
}

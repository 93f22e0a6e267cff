import { entriesOf } from '../../core/lists.js';
import wordLists from '../../../../config/commands/words.json' with { type: 'json' };
import { isInWorkspace } from '../guarded-paths.js';
import {
  type Arg,
  type Code,
  danger,
  type Finding,
  type Interprets,
  type Invocation,
  isFetched,
  pathsOf,
  type Program,
  secretIn,
  unanalysable,
  writeTo,
  unclear,
} from './invocation.js';
import { taskFindings, writtenFindings } from './simple-command.js';
import { sendsWords } from './questions.js';
import { literalArg, parseOptions, valuesOf, valuesOfAny } from './words.js';

/** Shells whose text is read as bash. What others make of the same words (qualifiers of zsh, tests of dash) is not
 * known. */
const likeBash: ReadonlySet<string> = new Set(['sh', 'bash', 'rbash']);

export const interpreterCodes: Readonly<Record<string, Code>> = { calculator, deno, interpreter, make, shell };

function interpreter(call: Invocation, { takes = [], interprets: how = {} }: Program): readonly Finding[] {
  const { args } = call;
  const at = args.findIndex(({ text }) => carriesCode(text, how));
  const script = scriptAt(args, takes);
  const own = script < 0 ? args : args.slice(0, script + 1);
  if (own.some(({ text }) => how.preload?.some((begin) => text.startsWith(begin)) === true))
    return danger(call, 'loads code before the program');
  if (at >= 0 && (script < 0 || at <= script)) return inlineCode(args, at, how, call);
  const module = how.language === 'python' ? moduleOf(args) : null;
  if (module !== null) return moduleFindings(module, call);
  const file = args[script];
  return file && !isInput(file) ? runsFile(file, call) : fromInput(how, call);
}

function carriesCode(text: string, { letters = '', inline = [] }: Interprets): boolean {
  if (inline.some((begin) => text.startsWith(begin))) return true;
  const cluster = /^-([a-zA-Z0]*)/.exec(text)?.[1] ?? '';
  return [...cluster].some((letter) => letters.includes(letter));
}

function isInput(file: Arg): boolean {
  return file.text === '-' || file.text === '/dev/stdin';
}

function isFed({ piped, input }: Invocation['place']): boolean {
  return piped || input.trim() !== '';
}

function scriptAt(args: readonly Arg[], takes: readonly string[]): number {
  for (let i = 0; i < args.length; i++) {
    const text = args[i]?.text ?? '';
    if (takes.includes(text)) i++;
    else if (text === '-' || !text.startsWith('-')) return i;
  }
  return -1;
}

interface Module {
  readonly name: string;
  readonly args: readonly Arg[];
}

/** `-m name`, also behind other letters and with the name attached. */
function moduleOf(args: readonly Arg[]): Module | null {
  const at = args.findIndex(({ text }) => /^-[bBdEhiIOPqsSuvVx]*m/.test(text));
  const before = args.slice(0, Math.max(0, at));
  const isValue = (index: number): boolean => /^-[WX]$/.test(before[index - 1]?.text ?? '');
  const operand = before.some(({ text }, index) => !text.startsWith('-') && !isValue(index));
  if (at < 0 || operand) return null;
  const attached = args[at]?.text.replace(/^-\w*?m/, '') ?? '';
  if (attached !== '') return { name: attached, args: args.slice(at + 1) };
  return { name: args[at + 1]?.text ?? '', args: args.slice(at + 2) };
}

function inlineCode(args: readonly Arg[], at: number, how: Interprets, call: Invocation): readonly Finding[] {
  const option = args[at] ?? literalArg('');
  const text = /^(?:--?[a-z]+=|-c(?=.))(.+)$/s.exec(option.text)?.[1];
  const next = args[at + 1] ?? literalArg('');
  const code = text ?? next.text;
  if ([option, next].some((arg) => arg.dynamic || arg.substitution !== 'none'))
    return unclear(call, 'runs code that is known only when it runs');
  if (how.shell === true) return otherShell([code], call);
  if (call.name === 'perl' && isReplacing(args, at)) return replaced(args, at, call);
  return how.language && isPlainCode(code, how.language) ? [] : unclear(call, 'runs code that is not analysed');
}

function isReplacing(args: readonly Arg[], at: number): boolean {
  const plain =
    /^-[0-9lnpaiw.]*e$/.test(args[at]?.text ?? '') &&
    args.slice(0, at).every(({ text }) => /^-(?:[0-9lnpw]*|[0-9lnpw]*i[.\w]*)$/.test(text));
  return plain && isPlainPerl(args[at + 1]?.text ?? '');
}

/** `perl -pi -e 's/a/b/' file`: like `sed -i`. */
function replaced(args: readonly Arg[], at: number, call: Invocation): readonly Finding[] {
  const files = args.slice(at + 2);
  const inPlace = args.slice(0, at + 1).some(({ text }) => /^-[0-9lnpaw]*i/.test(text));
  return inPlace ? files.flatMap((arg) => writeTo(arg, call)) : sendsWords(call, files);
}

function fromInput(how: Interprets, call: Invocation): readonly Finding[] {
  const { input, next } = call.place;
  if (!isFed(call.place)) return [];
  const literal = next === null && /^\s*\S/.test(input) && how.language && isPlainCode(input, how.language);
  return literal ? [] : danger(call, 'runs its input as a program');
}

function runsFile(file: Arg, call: Invocation): readonly Finding[] {
  if (file.substitution !== 'none' || /^\/dev\/|^\/proc\//.test(file.text))
    return unclear(call, 'runs a program that is known only when it runs');
  if (/^https?:|^data:/.test(file.text)) return danger(call, 'runs a program from the network');
  if (isFetched(file.text, call.scan)) return danger(call, 'runs a file that was fetched from the network');
  if (file.dynamic) return unclear(call, 'runs a file that is known only when it runs');
  const written = writtenFindings(file.text, call);
  if (written.length > 0) return written;
  if (/^\/(?:tmp|var\/tmp|dev\/shm)\//.test(file.text)) return danger(call, 'runs a file from a temporary folder');
  const told = taskFindings(
    call,
    call.args.slice(call.args.indexOf(file) + 1).map(({ text }) => text),
  );
  return told;
}

function moduleFindings({ name, args }: Module, call: Invocation): readonly Finding[] {
  if (/^(?:pip|twine|sqlite3)$/.test(name)) return call.argv([literalArg(name), ...args]);
  if (/^(?:http\.server|SimpleHTTPServer|pyftpdlib|uploadserver)$/.test(name))
    return danger(call, 'serves the folder to the network');
  if (otherwise.test(name)) return danger(call, 'reaches more than the workspace');
  return name === 'timeit' ? timed(args, call) : [];
}

const otherwise =
  /^(?:smtplib|smtpd|ftplib|telnetlib|webbrowser|pty|code|pdb|trace|runpy|zipapp|cProfile|profile|bdb|idlelib)$/;

/** `timeit` runs each of its words as code. */
function timed(args: readonly Arg[], call: Invocation): readonly Finding[] {
  const options = parseOptions(args, '-n -r -s -u --number --repeat --setup --unit');
  const code = [...options.operands, ...valuesOf(options, '-s', '--setup')];
  const plain = code.every((arg) => !arg.dynamic && arg.substitution === 'none' && isPlainCode(arg.text, 'python'));
  return plain ? [] : unclear(call, 'runs code that is not analysed');
}

function shell(call: Invocation): readonly Finding[] {
  const args = call.args.filter((_arg, index) => !/^[-+][oO]$/.test(call.args[index - 1]?.text ?? ''));
  const at = args.findIndex(({ text }) => /^-[a-zA-Z]*c[a-zA-Z]*$/.test(text));
  const first = args.findIndex(({ text }) => !/^[-+]/.test(text));
  const file = args[first];
  if (args.some(({ text }) => /^--(?:rcfile|init-file)/.test(text))) return danger(call, 'runs another start-up file');
  const before = call.args.slice(
    0,
    Math.max(
      0,
      call.args.findIndex(({ text }) => !/^[-+]|^keyword$/.test(text)),
    ),
  );
  const keyword = before.some(({ text }) => /^-[a-zA-Z]*k|^keyword$/.test(text));
  if (keyword) return danger(call, 'makes words after a command change its variables');
  if (at >= 0 && (first < 0 || at < first)) return inlineShell(args, at, call);
  if (!file || args.some(({ text }) => /^-[a-z]*s/.test(text))) return shellInput(call);
  return isInput(file) ? danger(call, 'runs its input as a program') : runsFile(file, call);
}

function shellInput(call: Invocation): readonly Finding[] {
  if (isFed(call.place)) return danger(call, 'runs its input as a program');
  return call.args.some(({ text }) => /^-[a-z]*[il]/.test(text)) ? danger(call, 'starts an interactive shell') : [];
}

function inlineShell(args: readonly Arg[], at: number, call: Invocation): readonly Finding[] {
  const code = args.slice(at + 1).find(({ text }) => !/^[-+][a-zA-Z]+$|^--$/.test(text)) ?? args[at + 1];
  if (!code || code.dynamic || code.substitution !== 'none')
    return unanalysable(`${call.name} -c runs a text that is known only when it runs`);
  if (!likeBash.has(call.name)) return otherShell(code.values, call);
  return code.values.flatMap((text) => call.script(text, { next: null, posix: call.name === 'sh' }));
}

/** Reads the text as bash would, for the files that it names, but calls it dangerous in any case. */
function otherShell(texts: readonly string[], call: Invocation): readonly Finding[] {
  const named = texts.flatMap((text) => call.script(text, { next: null }));
  return [...named, ...danger(call, 'runs a text of another shell')];
}

function deno(call: Invocation): readonly Finding[] {
  const [verb, ...rest] = call.args;
  if (/^(?:eval|repl|install|upgrade|jupyter|x|publish|serve|deploy|compile)$/.test(verb?.text ?? ''))
    return unclear(call, 'runs or installs code that is not analysed');
  const remote = rest.some(({ text }) => /^(?:https?:|npm:|jsr:|data:|-$)/.test(text));
  return remote ? danger(call, 'runs a program from the network') : [];
}

/** bc and dc calculate; dc has `!` to run a command. */
function calculator(call: Invocation): readonly Finding[] {
  const text = `${call.place.input} ${call.args.map((arg) => arg.text).join(' ')}`;
  if (call.name === 'dc' && text.includes('!')) return danger(call, 'runs a command');
  return [];
}

/** Options by which build tools are given recipes, or the folder where they lie. */
const recipeOptions: Readonly<Record<string, string>> = {
  make: '-f --file --makefile -C --directory -I --include-dir',
  gmake: '-f --file --makefile -C --directory -I --include-dir',
  ninja: '-f -C',
  just: '-f --justfile -d --working-directory',
  task: '-t --taskfile -d --dir',
  rake: '-f --rakefile -I -r -R',
};

/** Recipes from another place, or from one that is known only when it runs. */
function fetchesRecipes(call: Invocation): boolean {
  const names = recipeOptions[call.name] ?? '';
  return valuesOfAny(parseOptions(call.args, names), names.split(' ')).some((arg) => {
    if (arg.dynamic) return arg.substitution !== 'names';
    const paths = arg.values.flatMap((value) => pathsOf(value, call.scan));
    return arg.text === '-' || !paths.every((path) => isInWorkspace(path, call.scan.context));
  });
}

/** Build tools run the workspace's recipes. Nobody has seen a recipe from elsewhere or from a word. */
function make(call: Invocation): readonly Finding[] {
  const words = call.args.map(({ text }) => text);
  const elsewhere = fetchesRecipes(call);
  if (elsewhere || call.args.some((arg) => arg.substitution === 'any'))
    return danger(call, 'runs recipes that are not in the workspace');
  if (call.name === 'rake' && words.some((text) => /^(?:-p|-e|-E|--execute\S*)$/.test(text)))
    return danger(call, 'runs code given as a word');
  const recipes =
    words.find((_text, index) => /^(?:-f|--file|--makefile)$/.test(words[index - 1] ?? '')) ??
    (call.name === 'just' ? 'justfile' : 'Makefile');
  const fresh = writtenFindings(recipes, call);
  if (fresh.length > 0) return fresh;
  if (
    words.some(
      (text) =>
        /^(?:--eval|-E|--execute|-e$)|^(?:SHELL|\.SHELLFLAGS|MAKEFLAGS|MAKEFILES)[:+?]?=/.test(text) &&
        call.name !== 'ninja',
    )
  )
    return danger(call, 'runs code given as a word');
  if (
    words.some((text) =>
      /^(?:install|uninstall|publish|deploy|release|db:(?:drop|reset|purge|setup|schema:load).*)$/.test(text),
    )
  )
    return danger(call, 'installs, publishes or drops');
  const secret = call.args.map((arg) => secretIn(arg, call.scan)).find((found) => found !== null);
  return secret ? danger(call, `names the secret file ${secret}`) : taskFindings(call);
}

const pythonNames = new Set(entriesOf(wordLists.lists.plainPython));
const javascriptNames = new Set(entriesOf(wordLists.lists.plainJavascript));
const pythonStrings = /(?:\b([fF][rR]?|[rR][fF]))?(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')/g;
const strings = /"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'/g;

/** True for a one-line program that calculates and prints: every name in it is on a list, and its texts name nothing
 * that could be called. Whatever is not obviously so is false. */
function isPlainCode(code: string, language: 'python' | 'javascript'): boolean {
  if (code.length > 2000 || /[`@\\]|__|\[\s*["'][^"']*["']\s*\]\s*\(/.test(code)) return false;
  if (
    language === 'python'
      ? /\{[^}]*[.[]/.test(code) && /\bformat\b/.test(code)
      : /\[\s*["']|constructor|prototype|\bfunction\b/.test(code) || !requiresOnlyJson(code)
  )
    return false;
  const bare = language === 'python' ? code.replace(pythonStrings, fields) : code.replace(strings, ' ');
  if (/["'$]/.test(bare)) return false;
  const known = language === 'python' ? pythonNames : javascriptNames;
  const own = new Set(
    [...bare.matchAll(/\b(?:for|let|const|var|lambda)\s+(\w+)\b|\b(\w+)\s*=(?!=)|\(?\b(\w+)\)?\s*=>/g)].map(
      (match) => match[1] ?? match[2] ?? match[3] ?? '',
    ),
  );
  if ([...own].some((name) => dangerousNames.has(name))) return false;
  return [...bare.matchAll(/[A-Za-z_]\w*/g)].every(([name]) => known.has(name) || own.has(name));
}

/** Returns the code in the braces of a Python f-string; a blank for any other text. */
function fields(text: string, formatted?: string): string {
  return formatted ? [...text.matchAll(/\{([^{}]*)\}/g)].map((match) => ` ${match[1] ?? ''} `).join(' ') : ' ';
}

const dangerousNames = new Set(entriesOf(wordLists.lists.dangerousNames));

function requiresOnlyJson(code: string): boolean {
  return [...code.matchAll(/\brequire\b\s*(.{0,200})/gs)].every(
    (match) =>
      /^\(\s*["']\.{1,2}\/[\w./-]*\.json["']\s*\)/.test(match[1] ?? '') ||
      /^\(\s*["'](?:\.\/)?package\.json["']\s*\)/.test(match[1] ?? ''),
  );
}

/** True for a program of perl that only replaces or transliterates text: no code in the pattern or the replacement. */
function isPlainPerl(code: string): boolean {
  if (code.length > 2000 || /[`]|[@$]\{|\(\?{1,2}\{|\(\?\?|\\0/.test(code)) return false;
  return code
    .split(/;\s*(?=s\W|tr\W|y\W|$)/)
    .every((statement) => statement.trim() === '' || isReplacement(statement.trim()));
}

const replacement = new RegExp(
  [
    '^(?:s|tr|y)([/|#,!%~])((?:\\\\.|(?!\\1)[^\\\\])*)\\1((?:\\\\.|(?!\\1)[^\\\\])*)\\1([gimsxcdr]*)',
    '(?:\\s+(?:if|unless)\\s+(?:/(?:\\\\.|[^/\\\\])*/[i]?|\\d+\\s*\\.\\.\\s*\\d+|\\$\\.\\s*[=<>]=?\\s*\\d+))?$',
  ].join(''),
  's',
);
const braces = /^s\{((?:\\.|[^{}\\])*)\}\s*\{((?:\\.|[^{}\\])*)\}([gimsx]*)$/s;

function isReplacement(statement: string): boolean {
  const [, , , text] = replacement.exec(statement) ?? braces.exec(statement) ?? [];
  return text !== undefined && !/@\w+\s*\[|\$\w+\s*->/.test(text);
}

import { addAll, entriesOf } from '../../core/lists.js';
import textTables from '../../../../config/commands/text.json' with { type: 'json' };
import { containsWorkspace, isInWorkspace } from '../guarded-paths.js';
import {
  type Arg,
  type Code,
  danger,
  type Finding,
  type Invocation,
  pathsOf,
  type OptionScan,
  secretIn,
  unknownText,
  writeTo,
} from './invocation.js';
import { printsNames } from './readers.js';
import { literalArg, parseOptions, unknownArg } from './words.js';

export const findCodes: Readonly<Record<string, Code>> = { fd, find };

const writes = /^-f(?:print|print0|printf|ls)$/;
const valued = /^-(?:i?name|i?path|i?wholename|i?regex|perm|newer\w*|size|[acm]time|[acm]min|user|group|printf)$/;
const runs = /^-(?:exec|execdir|ok|okdir)$/;

function find(call: Invocation): readonly Finding[] {
  const findings: Finding[] = [];
  if (call.args.some(({ text }) => /^-(?:exec|ok)dir$/.test(text))) call.scan.folders.wanders = true;
  for (let at = 0; at < call.args.length; at++) {
    const end = runs.test(call.args[at]?.text ?? '') ? commandEnd(call.args, at + 1) : at;
    addAll(
      findings,
      end > at
        ? [
            ...executed(call.args.slice(at + 1, end), call),
            ...(printsNames.test(call.args[at + 1]?.text ?? '') ? [] : secretTarget(call)),
          ]
        : primary(at, call),
    );
    at = end;
  }
  return findings;
}

/** One word of find that starts no command. */
function primary(at: number, call: Invocation): readonly Finding[] {
  const [before, arg] = [call.args[at - 1]?.text ?? '', call.args[at] ?? unknownArg];
  if (valued.test(before)) return [];
  if (arg.text === '-delete') return danger(call, 'deletes what it finds');
  if (writes.test(arg.text)) return writeTo(call.args[at + 1] ?? unknownArg, call);
  return [];
}

function commandEnd(args: readonly Arg[], from: number): number {
  const end = args.findIndex(
    (arg, index) => index >= from && (arg.text === ';' || (arg.text === '+' && args[index - 1]?.text === '{}')),
  );
  return end < 0 ? args.length : end;
}

function executed(words: readonly Arg[], call: Invocation): readonly Finding[] {
  const from = call.args[0]?.text ?? '.';
  const { home } = call.scan.context;
  const broad = from === '/' || from.replace(/\/+$/, '') === home || from === '/etc' || from === '/root';
  const found =
    listedBelow(
      [
        literalArg('find'),
        ...call.args.slice(
          0,
          call.args.findIndex(({ text }) => runs.test(text)),
        ),
      ],
      call.scan,
    ) ?? '\0';
  const filled = words.map((arg) =>
    arg.text.includes('{}')
      ? {
          ...arg,
          text: arg.text.replaceAll('{}', found),
          values: [arg.text.replaceAll('{}', found)],
          dynamic: true,
          substitution: 'names' as const,
        }
      : arg,
  );
  const inner = call.argv(filled, { captured: true, piped: false });
  return broad ? [...inner, ...danger(call, 'acts on files all over the system')] : inner;
}

function secretTarget(call: Invocation): readonly Finding[] {
  const filter = secretFilter(
    call.name,
    call.args.map(({ text }) => text),
    call.scan,
  );
  if (filter !== null) return danger(call, `acts on files with secrets, which ${filter} picks`);
  for (const arg of call.args) {
    const secret = arg.text.startsWith('-')
      ? null
      : secretIn({ ...literalArg(arg.text), glob: /[*?[]/.test(arg.text) }, call.scan);
    if (secret !== null) return danger(call, `acts on the secret file ${secret}`, [secret]);
  }
  return [];
}

/** The test of find or fd among the words that picks secret files, or null. */
export function secretFilter(name: string, words: readonly string[], scan: OptionScan): string | null {
  const { secrets } = scan.context;
  const filters = name.endsWith('find') ? findFilters(words) : fdFilters(words);
  return filters.find(({ text, kind }) => secrets.singlesOut(text, kind))?.text ?? null;
}

interface Filter {
  readonly text: string;
  readonly kind: 'glob' | 'regex';
}

function findFilters(words: readonly string[]): readonly Filter[] {
  return words.flatMap((text, index): readonly Filter[] => {
    const before = words[index - 1] ?? '';
    const negated = /^(?:!|-not)$/.test(words[index - 2] ?? '');
    if (negated || !/^-i?(?:name|path|wholename|regex)$/.test(before)) return [];
    return [{ text, kind: before.endsWith('regex') ? 'regex' : 'glob' }];
  });
}

/** Extensions, and the first operand, which is a regular expression unless globs are asked for. */
function fdFilters(words: readonly string[]): readonly Filter[] {
  const own = words.slice(0, words.findIndex((text) => /^(?:-[a-zA-Z]*[xX]|--exec.*)$/.test(text)) >>> 0);
  const { flags, operands } = parseOptions(
    own.map((text) => literalArg(text)),
    fdTakes,
  );
  const named = flags.filter(({ name }) => name === '-e' || name === '--extension');
  const extensions = named.flatMap(({ value }) => (value ? [`*.${value.text}`] : []));
  const kind = flags.some(({ name }) => name === '-g' || name === '--glob') ? 'glob' : 'regex';
  const patterns = operands.slice(0, 1).map(({ text }): Filter => ({ text, kind }));
  return [...extensions.map((text): Filter => ({ text, kind: 'glob' })), ...patterns];
}

const fdTakes = new Set(entriesOf(textTables.lists.fdTakes));

function fd(call: Invocation): readonly Finding[] {
  const at = call.args.findIndex(({ text }) => /^(?:-[a-zA-Z]*[xX]|--exec|--exec-batch)$/.test(text));
  const attached = call.args.find(({ text }) => /^--exec(?:-batch)?=/.test(text));
  if (attached) return danger(call, 'runs a command on what it finds');
  if (at < 0) return [];
  const words = call.args.slice(at + 1);
  const filled = words.map((arg) => (arg.text.includes('{') ? { ...unknownArg, substitution: 'names' as const } : arg));
  return [
    ...call.argv(
      words.some(({ text }) => text.includes('{')) ? filled : [...filled, { ...unknownArg, substitution: 'names' }],
      { captured: true, piped: false },
    ),
    ...secretTarget(call),
  ];
}

/** Listers that leave out hidden files by themselves. */
const skipsHidden = /^(?:rg|fd|fdfind)$/;
/** Files of one extension, of which none is a setting that some program obeys. */
const plainKind = /^\*?[\w*-]*\.(?!json|ya?ml|toml|sh|bash|zsh|fish|xml|lock|cfg|ini|conf|env)\w+$/;
const plainFolder = /^[\w][\w-]*(?:\/[\w][\w.-]*)*\/?$/;

/** Returns the text of a word for a file that a lister finds: below the workspace and neither hidden nor protected, so
 * that writing to it is an ordinary change; null if the words do not show that. `words` are those of find, or of the
 * command before a pipe, its name first. */
export function listedBelow(words: readonly Arg[], scan: OptionScan): string | null {
  const { context, folders } = scan;
  if (folders.lost || !folders.cwds.every((cwd) => isInWorkspace(cwd, context))) return null;
  const texts = words.map(({ text }) => text);
  if (texts.some((text) => text.includes(unknownText) || /^[/~]|\.\.|[$|;`]/.test(text))) return null;
  return isNarrow(texts) || isVisible(texts) || isNamed(texts, scan) ? `${context.workspace}/${unknownText}` : null;
}

/** Only files of one extension. */
function isNarrow(texts: readonly string[]): boolean {
  return (
    texts.some((text, index) => /^-i?name$/.test(texts[index - 1] ?? '') && plainKind.test(text)) ||
    texts.some((text) => text.startsWith('--include=') && plainKind.test(text.slice(10))) ||
    (texts[0] === 'ls' &&
      texts
        .slice(1)
        .every(
          (text) =>
            /^-|^[\w/-]*\*\.\w+$/.test(text) && (text.startsWith('-') || plainKind.test(text.replace(/^.*\//, ''))),
        ) &&
      texts.length > 1)
  );
}

function isVisible(texts: readonly string[]): boolean {
  return (
    skipsHidden.test(texts[0] ?? '') && !texts.some((text) => /^(?:-\w*[uH.]|--hidden|--no-ignore\S*|-uu+)$/.test(text))
  );
}

/** A folder of the workspace, not the whole of it: the first operand of find, the last of a search. */
function isNamed(texts: readonly string[], scan: OptionScan): boolean {
  const { context } = scan;
  const folders = texts.slice(1).filter((text) => plainFolder.test(text) && !text.startsWith('.git'));
  const folder =
    texts[0] === 'grep'
      ? /^(?:src|tests?|lib|app|packages|docs)(?:\/|$)/.exec(texts.at(-1) ?? '')?.input
      : texts[0] === 'find'
        ? folders[0]
        : undefined;
  return (
    folder !== undefined &&
    !texts.some((text) => /^\.\/?$/.test(text)) &&
    pathsOf(folder, scan).every((path) => isInWorkspace(path, context) && !containsWorkspace(path, context))
  );
}

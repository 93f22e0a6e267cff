import { change, danger, fromFile, secretIn, unanalysable, writeTo } from './shell-findings.js';
import { has, parseOptions, valuesOf } from './shell-options.js';
import { literalArg } from './shell-words.js';
import type { Finding, Handler, Invocation } from './shell-types.js';

export const awkHandlers: ReadonlyMap<string, Handler> = new Map<string, Handler>(
  ['awk', 'gawk', 'mawk', 'nawk', 'original-awk'].map((name) => [name, awk]),
);

function awk(call: Invocation): readonly Finding[] {
  const options = parseOptions(
    call.args,
    '-F -v -f -i -l -E -e --field-separator --assign --file --include --load --exec --source',
  );
  if (
    has(
      options,
      '-l',
      '--load',
      '-E',
      '--exec',
      '-D',
      '--debug',
      '-o',
      '--pretty-print',
      '-p',
      '--profile',
      '-d',
      '--dump-variables',
    )
  )
    return danger(call, 'loads or writes more than the program given');
  if (has(options, '-i', '--include')) return danger(call, 'loads another program or edits files in place');
  if (has(options, '-f', '--file')) return fromFile(valuesOf(options, '-f', '--file'), call);
  const given = options.flags.flatMap((flag) =>
    flag.value && (flag.name === '-e' || flag.name === '--source') ? [flag.value] : [],
  );
  const program = given.length > 0 ? given : options.operands.slice(0, 1);
  const files = given.length > 0 ? options.operands : options.operands.slice(1);
  if (program.some((arg) => arg.dynamic || arg.substitution !== 'none'))
    return unanalysable('a program of awk with unknown text');
  const unknown = files.some((arg) => arg.dynamic && arg.substitution !== 'names')
    ? change(call, 'takes words that are known only when it runs')
    : [];
  return [...programFindings(program.map(({ text }) => text).join('\n'), call), ...unknown];
}

function programFindings(program: string, call: Invocation): readonly Finding[] {
  const { code, strings } = split(program);
  const secret = strings.map((text) => secretIn(literalArg(text), call.scan)).find((found) => found !== null);
  if (secret) return danger(call, `names the secret file ${secret}`, [secret]);
  if (
    /\bsystem\s*\(|@\s*(?:load|include|namespace)|@\s*\w+\s*\(|\/inet/.test(code) ||
    strings.some((text) => text.startsWith('/inet'))
  )
    return danger(call, 'runs a command or opens a connection from awk');
  if (/\|&?(?!\|)/.test(code.replaceAll('||', '  '))) return danger(call, 'pipes to a command from awk');
  if (/\bgetline\b[^;}\n]*</.test(code)) return danger(call, 'reads files that awk names itself');
  if (/\bENVIRON\b|\bPROCINFO\b|\bSYMTAB\b|\bFUNCTAB\b/.test(code))
    return danger(call, 'reads the environment, which holds keys');
  if (/\bARG[VC]\s*(?:\[[^\]]*\])?\s*=(?!=)/.test(code)) return danger(call, 'chooses its input files itself');
  return printed(code, program, call);
}

/** The program's own signs, with strings as `""` and patterns and comments blanked out, and the strings. A slash begins
 * a pattern where no value stands before it. */
function split(program: string): { readonly code: string; readonly strings: readonly string[] } {
  const token = /"((?:[^"\\]|\\.)*)"|#[^\n]*|\/(?:\[(?:[^\]\\]|\\.)+\]|[^/\\\n[]|\\.)+\/|[\s\S]/gy;
  const strings: string[] = [];
  let code = '';
  for (let match = token.exec(program); match; match = token.exec(program)) {
    const [text] = match;
    const operand = /[\w)\]$"]\s*$/.test(code) && !/\b(?:return|print|in)\s*$/.test(code);
    if (match[1] !== undefined) {
      strings.push(match[1]);
      code += '""';
    } else if (text.startsWith('/') && text.length > 1 && operand) {
      code += '/';
      token.lastIndex = match.index + 1;
    } else code += text.startsWith('#') || (text.startsWith('/') && text.length > 1) ? ' ' : text;
  }
  return { code, strings };
}

function printed(code: string, program: string, call: Invocation): readonly Finding[] {
  for (const match of code.matchAll(/\bprintf?\b([^;}\n]*)/g)) {
    if (!/>/.test((match[1] ?? '').replace(/\([^()]*\)/g, ''))) continue;
    const target = /\bprintf?\b[^;}\n]*>>?\s*"((?:[^"\\]|\\.)*)"/.exec(program)?.[1];
    return target === undefined
      ? danger(call, 'writes to a file that awk names itself')
      : writeTo(literalArg(target), call);
  }
  return [];
}

import { addAll } from '../../core/lists.js';
import {
  type Code,
  danger,
  type Finding,
  fromFile,
  type Invocation,
  pathsOf,
  secretIn,
  unanalysable,
  writeTo,
  unclear,
} from './invocation.js';
import { has, literalArg, parseOptions, valuesOf } from './words.js';

export const sedCodes: Readonly<Record<string, Code>> = { sed };

function sed(call: Invocation): readonly Finding[] {
  const inPlace = call.args.some(({ text }) => /^-[nEruszb]*i/.test(text) || /^--i(?:n(?:-.*)?)?/.test(text));
  const options = parseOptions(
    call.args.map((arg) => (/^-[nErusz]*i/.test(arg.text) ? { ...arg, text: '-i', values: ['-i'] } : arg)),
    '-e -f -l --expression --file --line-length',
  );
  if (has(options, '-f', '--file')) return fromFile(valuesOf(options, '-f', '--file'), call);
  const scripts = valuesOf(options, '-e', '--expression');
  const code = scripts.length > 0 ? scripts : options.operands.slice(0, 1);
  const files = scripts.length > 0 ? options.operands : options.operands.slice(1);
  if (code.some((arg) => arg.dynamic && arg.substitution !== 'none'))
    return unclear(call, 'runs a script that is known only when it runs');
  const findings = code.some((arg) => arg.dynamic)
    ? unanalysable('a script of sed with unknown text')
    : scriptFindings(code.map(({ text }) => text).join('\n'), call, has(options, '--sandbox'));
  const written = inPlace ? files.flatMap((arg) => writeTo(arg, call)) : [];
  return [...findings, ...written];
}

/** Reads a script of sed command by command; one that it cannot follow counts as dangerous. */
function scriptFindings(script: string, call: Invocation, sandboxed: boolean): readonly Finding[] {
  const reader = { text: script, at: 0 };
  const findings: Finding[] = [];
  if (script.length > maxProgramChars) return unanalysable('a long script of sed');
  while (reader.at < script.length) {
    skip(reader, /[\s;]*/y);
    if (reader.at >= script.length) break;
    if (!address(reader)) return unanalysable('a script of sed');
    const command = script[reader.at++] ?? '';
    const found = one(command, reader, call);
    if (!found) return unanalysable(`the command ${command} of sed`);
    addAll(findings, found);
  }
  return sandboxed ? [] : findings;
}

interface Reader {
  readonly text: string;
  at: number;
}

function skip(reader: Reader, pattern: RegExp): string {
  pattern.lastIndex = reader.at;
  const match = pattern.exec(reader.text)?.[0] ?? '';
  reader.at += match.length;
  return match;
}

function address(reader: Reader): boolean {
  for (let count = 0; count < 2; count++) {
    const char = reader.text[reader.at];
    if (char === '/' || char === '\\') {
      if (char === '\\') reader.at++;
      const end = reader.text[reader.at] ?? '';
      reader.at++;
      if (!until(reader, end)) return false;
      skip(reader, /[IM]*/y);
    } else skip(reader, /\$|[+~]?\d+(?:~\d+)?/y);
    skip(reader, /\s*/y);
    if (reader.text[reader.at] !== ',') break;
    reader.at++;
    skip(reader, /\s*/y);
  }
  skip(reader, /[\s!]*/y);
  return true;
}

/** Past the next `end` that is neither escaped nor inside brackets. */
function until(reader: Reader, end: string): boolean {
  let brackets = false;
  for (; reader.at < reader.text.length; reader.at++) {
    const char = reader.text[reader.at];
    if (char === '\\') reader.at++;
    else if (!brackets && char === end) {
      reader.at++;
      return true;
    } else if (!brackets && char === '[' && reader.text.indexOf(']', reader.at + 2) > 0) {
      brackets = true;
      skip(reader, /\[\^?\]?/y);
      reader.at--;
    } else if (brackets && char === ']') brackets = false;
  }
  return false;
}

function one(command: string, reader: Reader, call: Invocation): readonly Finding[] | null {
  switch (command) {
    case '{':
    case '}':
    case '=':
    case 'd':
    case 'D':
    case 'g':
    case 'G':
    case 'h':
    case 'H':
    case 'n':
    case 'N':
    case 'p':
    case 'P':
    case 'x':
    case 'z':
    case 'F':
      return [];
    case 'l':
    case 'L':
    case 'q':
    case 'Q':
      skip(reader, /\s*\d*/y);
      return [];
    case '#':
      skip(reader, /[^\n]*/y);
      return [];
    case ':':
    case 'b':
    case 't':
    case 'T':
    case 'v':
      skip(reader, /[^;\n}]*/y);
      return [];
    case 'a':
    case 'i':
    case 'c':
      skip(reader, /(?:\\\n|[^\n])*/y);
      return [];
    case 'r':
    case 'R':
      return reads(skip(reader, /[^\n]*/y).trim(), call);
    case 'w':
    case 'W':
      return writes(skip(reader, /[^\n]*/y).trim(), call);
    case 'e':
      return danger(call, 'runs a shell command from sed');
    case 'y':
      return transliterate(reader) ? [] : null;
    case 's':
      return substitute(reader, call);
    default:
      return null;
  }
}

function reads(file: string, call: Invocation): readonly Finding[] {
  const secret = secretIn(literalArg(file), call.scan);
  for (const path of pathsOf(file, call.scan)) call.scan.files.reads.add(path);
  return secret === null ? [] : danger(call, `reads the secret file ${secret}`, [secret]);
}

function writes(file: string, call: Invocation): readonly Finding[] {
  return file === '/dev/stdout' || file === '/dev/stderr' ? [] : writeTo(literalArg(file), call);
}

function transliterate(reader: Reader): boolean {
  const end = reader.text[reader.at++] ?? '';
  return plainUntil(reader, end) && plainUntil(reader, end);
}

function plainUntil(reader: Reader, end: string): boolean {
  for (; reader.at < reader.text.length; reader.at++) {
    if (reader.text[reader.at] === '\\') reader.at++;
    else if (reader.text[reader.at] === end) {
      reader.at++;
      return true;
    }
  }
  return false;
}

function substitute(reader: Reader, call: Invocation): readonly Finding[] | null {
  const end = reader.text[reader.at++] ?? '';
  if (end === '' || end === '\n' || end === '\\' || !until(reader, end) || !plainUntil(reader, end)) return null;
  const flags = skip(reader, /[gpiImM\d]*e?[gpiImM\d]*/y);
  if (flags.includes('e')) return danger(call, 'runs a shell command from sed');
  if (reader.text[reader.at] !== 'w') return [];
  reader.at++;
  return writes(skip(reader, /[^\n]*/y).trim(), call);
}

export const awkCodes: Readonly<Record<string, Code>> = { awk };

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
  if (program.some((arg) => arg.dynamic || arg.substitution !== 'none'))
    return unanalysable('a program of awk with unknown text');
  return programFindings(program.map(({ text }) => text).join('\n'), call);
}

/** A longer program is not looked through. */
const maxProgramChars = 4000;

function programFindings(program: string, call: Invocation): readonly Finding[] {
  if (program.length > maxProgramChars) return unanalysable('a long program of awk');
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
    return danger(call, 'reads the environment, which contains keys');
  if (/\bARG[VC]\s*(?:\[[^\]]*\])?\s*=(?!=)/.test(code)) return danger(call, 'chooses its input files itself');
  return printed(code, program, call);
}

/** Splits a program into its code, with strings as `""` and patterns and comments blanked out, and its strings. A slash
 * begins a pattern if it does not follow a value. */
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

import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { CliError, type CommandHandler, type CommandLine, exit, type Repl } from '../../kernel/console/command.js';
import { pointInTime, printJson } from '../../kernel/console/line-output.js';
import { counted } from '../../kernel/tools/define-tool.js';
import { type Blame, type BlamedFile, openBlame } from './blame-file.js';
import { blameText, lineJson, porcelainText } from './blame-formats.js';
import type { BlamedLine } from './blamed-line.js';

interface Options {
  readonly json?: boolean;
  readonly porcelain?: boolean;
  readonly L?: string;
  readonly prompt?: boolean;
  readonly since?: string;
}

/** `agent blame` and `/blame`: who wrote each line of a file last. */
export const blame: CommandHandler = {
  line: {
    example: 'agent blame src/main.ts:10-20 --prompt',
    options: (command) =>
      command
        .option('-L <range>', 'only these lines: 10, 10,20 or 10,+5')
        .option('--prompt', 'print the whole prompt under each block')
        .option('--since <time>', 'only lines written since: 45m, 2h, 3d, 2w or 2026-03-01')
        .option('--json', 'one JSON object')
        .option('--porcelain', 'the format of git blame --porcelain, for editors'),
    run: (line, [target = ''], options: Options) => printBlame(line, target, options),
  },
  slash: (argument, repl) => showBlame(argument.trim(), repl),
};

async function printBlame(line: CommandLine, target: string, options: Options): Promise<number> {
  if (options.json && options.porcelain)
    throw new CliError(exit.usage, '--json and --porcelain cannot both be', 'Choose one.');
  const since = options.since === undefined ? null : pointInTime(options.since, '--since', Date.now());
  return await line.withStore(async (opened) => {
    await opened.newestHere();
    const { cwd, env } = opened.settings;
    const asked = fileAndLines(target, cwd, options.L);
    const file = await blamed(await openBlame(opened, env), asked, cwd);
    const lines = chosenLines(file, asked).filter((one) => since === null || isSince(one, since));
    const name = asked.name;
    if (options.json) printJson(line.out, { file: name, lines: lines.map(lineJson) }, 2);
    else if (options.porcelain) line.out.data(await porcelainText({ ...file, lines }, name));
    else {
      const { isTerminal, screen } = line.out;
      const columns = isTerminal ? (screen.columns ?? null) : null;
      line.out.print(blameText(lines, { columns, now: Date.now(), prompts: options.prompt === true }));
    }
    return exit.done;
  });
}

/** `/blame FILE[:lines]`: a page to scroll through. */
async function showBlame(argument: string, { screen, store, tables, settings, line }: Repl): Promise<void> {
  const words = argument.split(/\s+/).filter((word) => word !== '--prompt');
  if (argument === '') {
    screen.notice('info', 'Name a file: /blame src/main.ts, or some of its lines: /blame src/main.ts:10-20');
    return;
  }
  const asked = fileAndLines(words.join(' '), settings.cwd, undefined);
  const file = await blamed(await openBlame({ store, tables }, settings.env), asked, settings.cwd);
  const columns = line.out.screen.columns ?? null;
  const options = {
    columns: columns === null ? null : columns - 2,
    now: Date.now(),
    prompts: /(^|\s)--prompt\b/.test(argument),
  };
  const text = blameText(chosenLines(file, asked), options);
  await screen.page(`Blame of ${asked.name}`, text === '' ? 'The file is empty.' : text);
}

/** A file as it was named, and the lines that are asked for. */
export interface AskedLines {
  /** As it was given. */
  readonly name: string;
  /** Absolute. */
  readonly path: string;
  readonly first: number;
  readonly last: number;
}

/** Reads `FILE`, `FILE:10` or `FILE:10-20`, and the value of `-L`. A file with such a name wins. */
export function fileAndLines(target: string, cwd: string, range: string | undefined): AskedLines {
  const [, named, from, to] = /^(.+):(\d+)(?:-(\d+))?$/s.exec(target) ?? [];
  const isWhole = named === undefined || existsSync(resolve(cwd, target));
  const name = isWhole ? target : named;
  if (name === '') throw new CliError(exit.usage, 'no file is named', 'For example: agent blame src/main.ts:10-20');
  const path = resolve(cwd, name);
  if (range !== undefined) return { name, path, ...readRange(range) };
  if (isWhole || from === undefined) return { name, path, first: 1, last: Number.POSITIVE_INFINITY };
  return {
    name,
    path,
    ...checkedRange(Number(from), Number(to ?? from), `${from}${to === undefined ? '' : `-${to}`}`),
  };
}

function readRange(text: string): { readonly first: number; readonly last: number } {
  const [, from, separator, to] = /^(\d*)(?:([,-])(\+?\d*))?$/.exec(text) ?? [];
  if (from === undefined || text === '')
    throw new CliError(exit.usage, `-L: \`${text}\` is no range of lines`, 'For example -L 10,20 or -L 10,+5.');
  const first = from === '' ? 1 : Number(from);
  if (separator === undefined) return checkedRange(first, first, text);
  if (to === undefined || to === '') return checkedRange(first, Number.POSITIVE_INFINITY, text);
  return checkedRange(first, to.startsWith('+') ? first + Number(to.slice(1)) - 1 : Number(to), text);
}

function checkedRange(first: number, last: number, text: string): { readonly first: number; readonly last: number } {
  if (first >= 1 && last >= first) return { first, last };
  throw new CliError(exit.usage, `\`${text}\` is no range of lines`, 'Lines count from 1, and the first comes first.');
}

/** Returns the lines of a file and their authors. Throws a `CliError` (2) where neither the log nor git has it. */
export async function blamed(work: Blame, { path, name }: AskedLines, cwd: string): Promise<BlamedFile> {
  const file = await work.file(path);
  if (file === null)
    throw new CliError(
      exit.usage,
      `neither the log nor git has ${name}`,
      'agent blame shows files that a session changed or that are committed.',
    );
  if (typeof file === 'string') throw new CliError(exit.usage, `${name}: ${file}`, `Paths are relative to ${cwd}.`);
  return file;
}

/** Throws a `CliError` (2) for lines that the file does not have. */
export function chosenLines({ lines }: BlamedFile, { name, first, last }: AskedLines): readonly BlamedLine[] {
  if (first > Math.max(1, lines.length))
    throw new CliError(exit.usage, `${name} has no line ${first}`, `It has ${counted(lines.length, 'line')}.`);
  return lines.slice(first - 1, last);
}

function isSince({ call, commit, until }: BlamedLine, since: number): boolean {
  return (call?.at ?? commit?.at ?? until ?? 0) >= since;
}

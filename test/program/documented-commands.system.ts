import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Command } from 'commander';
import { afterAll, expect, test } from 'vitest';
import { addVerbs } from '../../src/kernel/console/registration.js';
import { foreignFlags } from '../../src/kernel/console/foreign-flags.js';
import { rootOptions } from '../../src/kernel/console/options.js';
import { table } from '../../src/commands/table.js';
import type { Place } from '../e2e/program.js';
import { agent, place, script } from './inside.js';

const root = join(import.meta.dirname, '../..');
const pages = [
  'README.md',
  ...readdirSync(join(root, 'docs'))
    .filter((name) => name.endsWith('.md') && !['commands.md', 'tools.md'].includes(name))
    .map((name) => `docs/${name}`),
];

/** A command line of a page. `needs`: what a reader must have for it, from the comment `<!-- needs: … -->` above its
 * block; empty: it runs as it is in any project. */
interface Documented {
  readonly page: string;
  readonly line: number;
  readonly text: string;
  readonly needs: string;
}

/** Returns the lines of shell blocks: fenced as sh, or indented by four blanks. */
function documentedIn(page: string): readonly Documented[] {
  const found: Documented[] = [];
  let fence: string | null = null;
  let needs = '';
  for (const [index, line] of readFileSync(join(root, page), 'utf8').split('\n').entries()) {
    const mark = /^<!-- needs: (.+) -->$/.exec(line);
    const opening = /^```(\w*)/.exec(line);
    if (mark) needs = mark[1] ?? '';
    else if (opening) fence = fence === null ? (opening[1] ?? '') : null;
    else if ((fence === 'sh' && line.trim() !== '') || (fence === null && /^ {4,}\S/.test(line)))
      found.push({ page, line: index + 1, text: line.trim(), needs });
    else if (line.trim() !== '' && fence === null) needs = '';
  }
  return found;
}

/** Splits a command line into words as a shell does, without its comment. Returns the commands between `|`, `&&`. */
function commandsOf(text: string): readonly (readonly string[])[] {
  const commands: string[][] = [[]];
  const pattern = /\s+#.*$|(\|\||&&|[|;])|((?:'[^']*'|"(?:[^"\\]|\\.)*"|[^\s'"|;&])+)|\s+|&/g;
  for (const [, operator, word] of text.matchAll(pattern)) {
    if (operator !== undefined) commands.push([]);
    else if (word !== undefined) commands.at(-1)?.push(word.replace(/'([^']*)'|"((?:[^"\\]|\\.)*)"/g, '$1$2'));
  }
  return commands;
}

/** The arguments of each `agent` in a line; variables set before it are left out. */
function agentCalls(text: string): readonly (readonly string[])[] {
  return commandsOf(text).flatMap((words) => {
    const at = words.findIndex((word) => !/^[A-Z_]+=/.test(word));
    return words[at] === 'agent' ? [words.slice(at + 1)] : [];
  });
}

const documented = pages.flatMap(documentedIn).filter(({ text }) => agentCalls(text).length > 0);

const program = new Command('agent').exitOverride();
await addVerbs(program, table, {
  load: 'all',
  line: () => Promise.reject(new Error('not run')),
  finish: () => undefined,
});
const rootFlags = [...Object.values(rootOptions), ...foreignFlags].flatMap(
  ({ flags }) => flags.match(/--?[\w-]+/g) ?? [],
);
const valued = new Set(
  Object.values(rootOptions).flatMap(({ flags }) => (/[<[]/.test(flags) ? (flags.match(/--?[\w-]+/g) ?? []) : [])),
);

/** Returns the options of a call that neither the program nor its command has. */
function unknownOptions(args: readonly string[]): readonly string[] {
  const end = args.indexOf('--');
  const own = end < 0 ? args : args.slice(0, end);
  const verbs = own.filter((word, index) => !word.startsWith('-') && !valued.has(own[index - 1] ?? ''));
  let command: Command = program;
  const flags = new Set([...rootFlags, '-h', '--help', '--version']);
  for (const word of verbs) {
    const next = command.commands.find((one) => one.name() === word);
    if (!next) break;
    command = next;
    for (const { short, long } of next.options)
      for (const flag of [short, long]) if (flag !== undefined) flags.add(flag);
  }
  return own.flatMap((word) => {
    const flag = /^(--?[A-Za-z][\w-]*)(?:=|$)/.exec(word)?.[1];
    return flag !== undefined && !flags.has(flag) ? [flag] : [];
  });
}

test('each command that a page shows has options and verbs that exist', () => {
  const wrong = documented.flatMap(({ page, line, text }) =>
    agentCalls(text).flatMap((args) => unknownOptions(args).map((flag) => `${page}:${line}: ${flag} in ${text}`)),
  );
  expect(wrong).toEqual([]);
  expect(documented.length).toBeGreaterThan(100);
});

const project = {
  'README.md': '# Parser\n\nReads things. TODO: more.\n',
  'package.json': '{"name":"parser","version":"1.0.0"}\n',
  'src/main.ts': '// TODO: parse\nexport const answer = 42;\n',
  'docs/a.md': 'Flamingo.\n',
};
const counts = { run: 0, parsed: 0 };

/** A project as a reader has one, with a session in its log. */
async function scratch(): Promise<Place> {
  const at = place(project);
  const git = (...args: readonly string[]): unknown =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], { cwd: at.work });
  git('init', '-q');
  git('add', '.');
  git('commit', '-qm', 'first');
  await agent(at, ['-p', 'list **/*.md']);
  return at;
}

/** Returns true for a line that only opens the REPL, which needs a terminal. */
function opensRepl(text: string): boolean {
  return agentCalls(text).some(
    (args) =>
      !args.some((word, index) => !word.startsWith('-') && !valued.has(args[index - 1] ?? '')) && !text.includes('|'),
  );
}

/** What runs of a page: lines without a mark, and those that need only a model, which a script plays. */
const runnable = documented.filter(({ needs, text }) => (needs === '' || needs === 'model') && !opensRepl(text));

test.each([...new Set(runnable.map(({ page }) => page))])(
  'the commands of %s run in a scratch project',
  async (page) => {
    const at = await scratch();
    const failed: string[] = [];
    for (const { text, needs, line } of runnable.filter((one) => one.page === page))
      for (const args of agentCalls(text)) {
        const model = needs === 'model' && !args.includes('-m') ? ['-m', script(at, [{ text: 'Done.' }])] : [];
        const { code, stderr } = await agent(at, [...model, ...args], { stdin: '' });
        if (code !== 0) failed.push(`${page}:${line}: ${text}: ${code}: ${stderr}`);
        counts.run++;
      }
    expect(failed).toEqual([]);
  },
);

afterAll(() => {
  counts.parsed = documented.length - runnable.length;
  console.log(`Documented command lines: ${counts.run} ran, ${counts.parsed} need something and were only parsed`);
});

test('links and images of the pages lead to files and headings that exist', () => {
  const anchor = (heading: string): string =>
    heading
      .toLowerCase()
      .replace(/[`*]/g, '')
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .trim()
      .replace(/\s/g, '-');
  const wrong = pages.flatMap((page) => {
    const text = readFileSync(join(root, page), 'utf8').replace(/```[^]*?```/g, '');
    return [...text.matchAll(/\]\((?!https?:|mailto:)([^)\s]*)\)/g)].flatMap(([, target = '']) => {
      const [file = '', heading] = target.split('#');
      const path = file === '' ? join(root, page) : join(root, dirname(page), file);
      if (!existsSync(path)) return [`${page}: ${target}`];
      if (heading === undefined) return [];
      const headings = [...readFileSync(path, 'utf8').matchAll(/^#{1,6} (.+)$/gm)].map(([, title = '']) =>
        anchor(title),
      );
      return headings.includes(heading) ? [] : [`${page}: ${target}`];
    });
  });
  expect(wrong).toEqual([]);
});

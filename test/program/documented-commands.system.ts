import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Command as Program } from 'commander';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { translateLine } from '../../src/cli/foreign-line.js';
import { addVerbs } from '../../src/kernel/console/registration.js';
import { foreignFlags } from '../../src/kernel/console/foreign-command-line.js';
import { rootOptions } from '../../src/kernel/console/options.js';
import { table } from '../../src/commands/table.js';
import type { Finished, Place } from '../e2e/program.js';
import { doubles, notDoubled, type Stage, type Stand } from './documented-doubles.js';
import {
  agentCall,
  agentCalls,
  type Command,
  commandsOf,
  type Documented,
  documentedIn,
  pages,
  root,
} from './documented-lines.js';
import { agent, atTerminal, place, type Typed } from './inside.js';

const documented = pages.flatMap(documentedIn);

const program = new Program('agent').exitOverride();
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
const verbs = program.commands.map((command) => command.name());

/** Returns the words of a call that are no options and no values of one. */
function operandsOf(args: readonly string[]): readonly string[] {
  return args.filter((word, index) => !word.startsWith('-') && !valued.has(args[index - 1] ?? ''));
}

/** Returns the options of a call that neither the program nor its command has. */
function unknownOptions(typed: readonly string[]): readonly string[] {
  const args = translateLine(typed, verbs);
  const end = args.indexOf('--');
  const own = end < 0 ? args : args.slice(0, end);
  let command: Program = program;
  const flags = new Set([...rootFlags, '-h', '--help', '--version']);
  for (const word of operandsOf(own)) {
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

/** Pages about the commands of other agents. */
const aboutOthers = /other-agents\.md$/;

test('each command that a page names in a sentence exists', () => {
  const named = pages
    .filter((page) => !aboutOthers.test(page))
    .flatMap((page) =>
      [...readFileSync(join(root, page), 'utf8').matchAll(/`agent ([a-z][a-z-]*)(?=[ `])/g)].map(
        ([, verb = '']) => verb,
      ),
    );
  expect([...new Set(named)].filter((verb) => !verbs.includes(verb))).toEqual([]);
});

test('each script that a page runs is in package.json', () => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: object };
  const named = pages.flatMap((page) =>
    [...readFileSync(join(root, page), 'utf8').matchAll(/npm run (?:-s )?([\w:-]{2,})/g)].map(([, name = '']) => name),
  );
  expect([...new Set(named)].filter((name) => !Object.hasOwn(scripts, name))).toEqual([]);
});

test('the pages name what a line needs in the words of the tables', () => {
  const said = new Set(documented.flatMap(({ needs }) => needs));
  expect([...said].sort()).toEqual([...Object.keys(doubles), ...Object.keys(notDoubled)].sort());
});

const project = {
  'README.md': '# Parser\n\nReads things. TODO: more.\n',
  'package.json': '{"name":"parser","version":"1.0.0","scripts":{"test":"true"}}\n',
  'src/main.ts': '// TODO: parse\nexport const answer = 42;\n',
  'docs/a.md': 'Flamingo.\n',
};

/** A project as a reader has one, with a session in its log. Requests that leave this machine find no way out. */
async function scratch(): Promise<Place> {
  const at = place(project);
  const nowhere = 'http://127.0.0.1:9';
  Object.assign(at.env, { HTTPS_PROXY: nowhere, HTTP_PROXY: nowhere, NO_PROXY: '127.0.0.1,localhost' });
  const git = (...args: readonly string[]): unknown =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], { cwd: at.work });
  git('init', '-q');
  git('add', '.');
  git('commit', '-qm', 'first');
  at.file('src/main.ts', '// TODO: parse more\nexport const answer = 43;\n');
  await agent(at, ['-p', 'list **/*.md']);
  return at;
}

/** The surroundings of a line that its page does not state. `code`: the exit code, where it is not 0. */
interface Given {
  readonly typed?: readonly Typed[];
  readonly stdin?: string;
  readonly env?: (at: Place) => Readonly<Record<string, string>>;
  readonly code?: number;
  /** It runs before the other lines of its page. */
  readonly isFirst?: true;
  /** Done first. */
  readonly before?: (at: Place, stage: Stage) => Promise<void> | void;
}

const yes: Given = { typed: [[/\[y\/N\]/, 'y\n']] };
/** Copies a server of each program. */
const imports = {
  before: ({ home }) => {
    const server = { files: { command: 'node', args: ['server.mjs'] } };
    for (const [file, text] of [
      ['.claude.json', JSON.stringify({ mcpServers: server })],
      ['.codex/config.toml', '[mcp_servers.files]\ncommand = "node"\n'],
      ['.gemini/settings.json', JSON.stringify({ mcpServers: server })],
      ['.config/opencode/opencode.json', JSON.stringify({ mcp: { files: { type: 'local', command: ['node'] } } })],
      ['.cursor/mcp.json', JSON.stringify({ mcpServers: server })],
    ] as const) {
      mkdirSync(dirname(join(home, file)), { recursive: true });
      writeFileSync(join(home, file), text);
    }
  },
  typed: [[/by kind: /, 'y\n']],
} satisfies Given;
/** Agrees to the call that the script makes. */
const approved: Given = {
  typed: [
    [/yes, session, or no/, 'yes\n'],
    [/❯ $/, '/exit\n'],
  ],
};
const interrupted = (shows: RegExp): Given => ({ typed: [[shows, null]], code: 130 });

/** Commits what is in the working directory on a branch beside main, and changes a file again. */
function changeOnBranch(at: Place): void {
  const git = (...args: readonly string[]): unknown =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], { cwd: at.work });
  git('checkout', '-qB', 'change');
  git('branch', '-f', 'main');
  git('commit', '-qam', 'next');
  const main = join(at.work, 'src/main.ts');
  writeFileSync(main, `${readFileSync(main, 'utf8')}// more\n`);
}

/** Opens the address that is shown, as a browser does. */
function visit(shown: string): void {
  void fetch(/http:\S+authorize\S+/.exec(shown)?.[0] ?? '');
}

/** Lines that begin like this are given more. */
const given: readonly (readonly [begins: string, Given])[] = [
  ['agent watch', interrupted(/Session /)],
  ['agent serve', interrupted(/http:\/\/127/)],
  ['agent tasks daemon', interrupted(/Ctrl-C/)],
  ['AGENT_TASKS_MACHINE=any agent tasks daemon', interrupted(/Ctrl-C/)],
  ['createdb agent', { isFirst: true }],
  ['psql agent -c "CREATE ROLE', { isFirst: true }],
  ['AGENT_STORE_URL=postgresql://owner@', { isFirst: true }],
  ['agent config set store.url', { isFirst: true }],
  // The new server is the old one, without the database.
  [
    'createdb -T template0 agent',
    { before: (_at, { env }) => void spawnSync('sh', ['-c', 'dropdb --force agent'], { env }) },
  ],
  ['agent --tools +tasks -m offline/weekday-news', approved],
  ['agent --tools +tasks -m offline/lights-off', approved],
  ['agent -m offline/weekday-news', approved],
  ['agent -m offline/lights-off', approved],
  ['agent undo 17', {}],
  ['agent undo', yes],
  ['agent redo', yes],
  ['agent restore', { ...yes, before: async (at) => void (await agent(at, ['undo', 'all', '--yes'])) }],
  // Another machine is another home.
  ['agent sessions import session.jsonl', { env: ({ home }) => ({ AGENT_HOME: join(home, 'elsewhere') }) }],
  ['agent tools add', yes],
  ['agent config trust  ', { ...yes, before: (at) => void at.file('.agent/config.json', '{"approval":"never"}') }],
  [
    'agent -p --input-format stream-json',
    { stdin: '{"type":"user","message":{"role":"user","content":"run the tests"}}\n' },
  ],
  ['agent import  ', imports],
  ['agent import --from codex,gemini ', { before: imports.before }],
  ['agent import --from ', imports],
  ['agent tasks approve', yes],
  // The session has no old results.
  ['agent -p -c "/compact --results"', { code: 1 }],
  ['agent review', { before: changeOnBranch }],
  ['agent mcp login issues', { typed: [[/http:\S+authorize\S+\n/, visit]] }],
];

function givenTo(text: string): Given {
  return given.find(([begins]) => text.startsWith(begins))?.[1] ?? {};
}

/** Returns true for a call that opens the REPL. */
function opensRepl(args: readonly string[]): boolean {
  const words = translateLine(args, verbs);
  return !verbs.includes(operandsOf(words)[0] ?? '') && !words.some((word) => word === '-p' || word === '--print');
}

/** Runs another program of a line as its shell does; one that ends in `&` until the test ends. */
async function otherProgram(at: Place, raw: string, env: NodeJS.ProcessEnv, input: string): Promise<Finished> {
  // Its value is that of the stage.
  if (/^\s*export \w+=/.test(raw)) return { code: 0, signal: null, stdout: '', stderr: '' };
  if (!raw.trim().endsWith('&')) {
    const { status, signal, stdout, stderr } = spawnSync('sh', ['-c', raw], {
      cwd: at.work,
      env,
      input,
      encoding: 'utf8',
    });
    return { code: status, signal, stdout, stderr };
  }
  const [file = '', ...args] = raw.trim().slice(0, -1).trim().split(/\s+/);
  const child = spawn(file, args, { cwd: at.work, env });
  onTestFinished(() => void child.kill());
  await Promise.race([once(child.stdout, 'data'), once(child, 'exit')]);
  return { code: child.exitCode ?? 0, signal: null, stdout: '', stderr: '' };
}

/** Returns what is typed for a call; null: it does not run on a terminal. The REPL is left once it waits for a message:
 * behind the answer of the model, where the line has a message for it. */
function typedFor(
  args: readonly string[],
  { typed, stdin }: Given,
  stage: Stage,
  input: string,
): Given['typed'] | null {
  if (typed !== undefined) return typed;
  if (!opensRepl(args) || input !== '' || stdin !== undefined) return null;
  const isAnswered = stage.says !== undefined && operandsOf(translateLine(args, verbs)).length > 0;
  return [[new RegExp(`${isAnswered ? `${stage.says}[^]*` : ''}❯ $`), '/exit\n']];
}

async function runCommand(at: Place, command: Command, stage: Stage, more: Given, input: string): Promise<Finished> {
  const env = { ...stage.env, ...more.env?.(at) };
  const call = agentCall(command);
  if (call === null) return await otherProgram(at, command.raw, { ...at.env, ...env }, input);
  const all = { ...env, ...call.env };
  const typed = typedFor(call.args, more, stage, input);
  return typed === null || typed === undefined
    ? await agent(at, call.args, { env: all, stdin: more.stdin ?? input })
    : await atTerminal(at, call.args, typed, { env: all });
}

/** Puts what stands on this machine in the place of documented names, in one pass. */
async function withReal(text: string, stands: readonly Stand[]): Promise<string> {
  const named = stands.filter(([documented]) => text.includes(documented));
  const real = new Map<string, string>();
  for (const [documented, one] of named) real.set(documented, typeof one === 'string' ? one : await one());
  const names = [...real.keys()].map((name) => name.replace(/[^\w\s]/g, '\\$&'));
  return names.length === 0 ? text : text.replace(new RegExp(names.join('|'), 'g'), (name) => real.get(name) ?? name);
}

/** Runs a line; returns what was wrong with it. */
async function runLine(at: Place, text: string, stage: Stage): Promise<string | null> {
  const more = givenTo(text);
  await more.before?.(at, stage);
  const real = await withReal(text, stage.stands ?? []);
  let input = '';
  for (const command of commandsOf(real)) {
    const { code, stdout, stderr } = await runCommand(at, command, stage, more, input);
    if (code !== (more.code ?? 0)) return `${text}: ${code}: ${stderr || stdout}`;
    input = command.pipes ? stdout : '';
  }
  return null;
}

/** Returns the lines of a page in the order in which they run. */
function linesOf(page: string): readonly Documented[] {
  const all = documented.filter((one) => one.page === page);
  const isFirst = ({ text }: Documented): boolean => givenTo(text).isFirst === true;
  return [...all.filter(isFirst), ...all.filter((one) => !isFirst(one))];
}

const counts = { run: 0, doubled: 0, parsed: {} as Record<string, number> };

/** Why a line is only parsed; null: it runs. */
function reasonNotToRun(needs: readonly string[]): string | null {
  for (const need of needs) {
    const reason = notDoubled[need] ?? doubles[need]?.missing?.() ?? null;
    if (reason !== null) return `${need}: ${reason}`;
  }
  return null;
}

test.each(pages.filter((page) => documented.some((one) => one.page === page)))(
  'the commands of %s run in a scratch project',
  async (page) => {
    const at = await scratch();
    const stages = new Map<string, Stage>();
    const failed: string[] = [];
    for (const { line, text, needs } of linesOf(page)) {
      const reason = reasonNotToRun(needs);
      if (reason !== null) {
        counts.parsed[reason] = (counts.parsed[reason] ?? 0) + 1;
        continue;
      }
      for (const need of needs) if (!stages.has(need)) stages.set(need, (await doubles[need]?.set(at)) ?? {});
      const set = needs.map((need) => stages.get(need) ?? {});
      const stage = {
        env: Object.assign({}, ...set.map(({ env }) => env)) as Record<string, string>,
        stands: set.flatMap(({ stands = [] }) => stands),
        says: set.find(({ says }) => says !== undefined)?.says,
      };
      const wrong = await runLine(at, text, stage).catch((error: unknown) => `${text}: ${String(error)}`);
      if (wrong !== null) failed.push(`${page}:${line}: ${wrong}`);
      counts[needs.length === 0 ? 'run' : 'doubled']++;
    }
    expect(failed).toEqual([]);
  },
);

afterAll(() => {
  const parsed = Object.entries(counts.parsed).map(([reason, count]) => `  ${count}: ${reason}`);
  const sum = Object.values(counts.parsed).reduce((all, count) => all + count, 0);
  console.log(
    [`Documented command lines: ${counts.run} ran, ${counts.doubled} ran against doubles, ${sum} were only parsed`]
      .concat(parsed)
      .join('\n'),
  );
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

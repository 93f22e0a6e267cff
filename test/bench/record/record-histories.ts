// Makes fixtures/histories again with the real programs: each runs in a home of its own, /home/ann, against a scripted
// model, in namespaces that have a loopback and nothing else. Linux, root, and PEERS_DIR with an npm project for each
// program ($PEERS_DIR/pi/node_modules/.bin/pi). `PEERS_DIR=... npm run t:recordings [-- <program>...]`
import { spawn, spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { type Line, type Program, programs } from './recorded-programs.js';
import { type Answer, openScriptedModels } from './scripted-models.js';

const home = '/home/ann';
const cwd = `${home}/shop`;
const inside = process.env['RECORDING'];
const names = process.argv.slice(2);

if (inside === undefined) {
  const out = mkdtempSync(join(tmpdir(), 'agent-recordings-'));
  for (const name of names.length > 0 ? names : Object.keys(programs)) {
    const script =
      'ip link set lo up && hostname laptop && mount -t tmpfs none /home && mkdir -p /home/ann/shop && exec "$0" "$@"';
    const namespaces = ['-m', '-n', '-u', '-p', '--fork', '--mount-proc', '--kill-child'];
    spawnSync('unshare', [...namespaces, 'sh', '-c', script, process.execPath, process.argv[1] ?? '', name], {
      stdio: 'inherit',
      env: { ...process.env, RECORDING: out },
    });
    if (!existsSync(join(out, name))) continue;
    rmSync(join('fixtures/histories', name), { recursive: true, force: true });
    cpSync(join(out, name), join('fixtures/histories', name), { recursive: true });
  }
  rmSync(out, { recursive: true });
} else {
  await record(names[0] ?? '', inside);
}

async function record(name: string, out: string): Promise<void> {
  const program = programs[name];
  if (!program) throw new Error(`no program is called ${name}: ${Object.keys(programs).join(', ')}`);
  const bin = join(process.env['PEERS_DIR'] ?? '', program.folder ?? name, 'node_modules/.bin', program.bin);
  if (!existsSync(bin)) return console.log(`${name}: ${bin} is not installed; skipped`);
  makeProject();
  const models = await openScriptedModels();
  for (const [path, content] of Object.entries(program.files(models.port))) {
    mkdirSync(dirname(join(home, path)), { recursive: true });
    writeFileSync(join(home, path), typeof content === 'string' ? content : JSON.stringify(content));
  }
  const env = {
    ...{ PATH: process.env['PATH'], HOME: home, USER: 'ann', LANG: 'C.UTF-8', TZ: 'UTC', TERM: 'xterm-256color' },
    ...{ NO_UPDATE_NOTIFIER: '1', DO_NOT_TRACK: '1', NO_BROWSER: '1' },
    ...program.env(models.port),
  };
  const start = (args: readonly string[], lines: readonly Line[] = []): Promise<string> => run(bin, args, env, lines);
  const version = /\d+\.\d+\.\d+/.exec(await start(['--version']))?.[0] ?? 'of an unknown version';
  await program.run({ models, start, play: (part) => models.play(script(program)[part]) });
  const kept = program.keep.flatMap((folder) => keep(join(out, name), folder));
  models.close();
  console.log(`${name} ${version}: ${kept.join(', ')}`);
  for (const request of models.asked)
    if (process.env['SHOW_TOOLS'] !== undefined) console.log(request.path, request.left, offered(request.tools));
}

/** What the program offered the model: `SHOW_TOOLS=1` its names, `SHOW_TOOLS=all` everything. */
function offered(tools: readonly unknown[]): string {
  const text = JSON.stringify(tools);
  return process.env['SHOW_TOOLS'] === 'all' ? text : (text.match(/"name":"[^"]+"/g) ?? []).join(' ');
}

/** A repository with two files, the same every time. */
function makeProject(): void {
  writeFileSync(join(cwd, 'notes.md'), '# Greetings\n\n1. Grüße aus Köln\n2. 你好，世界\n');
  const date = '2026-11-01T09:00:00Z';
  const git = (...args: string[]): unknown =>
    spawnSync('git', ['-c', 'user.name=Ann', '-c', 'user.email=ann@example.com', ...args], {
      cwd,
      env: { PATH: process.env['PATH'], HOME: home, GIT_AUTHOR_DATE: date, GIT_COMMITTER_DATE: date },
    });
  git('init', '-q', '-b', 'main');
  git('add', '.');
  git('commit', '-q', '-m', 'Greetings');
}

/** The conversation that every program has: two requests of the person, six calls, of which three at once and two that
 * fail, two answers. */
function script({ shell, read }: Program): Readonly<Record<'first' | 'second', readonly Answer[]>> {
  return {
    first: [
      {
        think: 'The notes may say it.',
        text: 'I look into the notes — „gleich“.',
        calls: [shell("printf 'Grüße, 世界 👋\\n'"), shell('ls no-such-folder'), read(`${cwd}/notes.md`)],
      },
      { calls: [shell('seq 1 1500')] },
      { text: 'We say “Grüße aus Köln” 👋.\n\n```sh\necho done\n```' },
    ],
    second: [
      {
        text: 'One moment.',
        calls: [read(`${cwd}/missing.md`), shell("sed -n 4p notes.md; echo 'warning' >&2; exit 3")],
      },
      { think: 'It stands in line 4.', text: 'The second greeting is 你好，世界.' },
    ],
  };
}

/** Runs a program to its end. Each of `lines` is typed once its output holds `after`; the input ends after the last. */
function run(bin: string, args: readonly string[], env: object, lines: readonly Line[]): Promise<string> {
  const child = spawn(bin, [...args], { cwd, env: env as NodeJS.ProcessEnv, stdio: ['pipe', 'pipe', 'pipe'] });
  return new Promise((resolve) => {
    let text = '';
    let seen = 0;
    let next = 0;
    const type = (): void => {
      for (let line = lines[next]; line; line = lines[next]) {
        const at = line.after === '' ? seen : text.indexOf(line.after, seen);
        if (at === -1) return;
        seen = at + line.after.length;
        next += 1;
        if (line.type !== null) child.stdin.write(`${line.type}\n`);
      }
      child.stdin.end();
    };
    const giveUp = setTimeout(() => child.kill('SIGKILL'), 120_000);
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (data: Buffer) => {
        text += data.toString();
        if (next < lines.length) type();
      });
    child.stdin.on('error', () => undefined);
    type();
    child.on('close', (status) => {
      clearTimeout(giveUp);
      if (process.env['SHOW_OUTPUT'] !== undefined || status !== 0)
        console.log(args.join(' '), status, text.slice(-3000));
      resolve(text);
    });
  });
}

/** Copies what is kept of the home; a database becomes the statements that make it. Returns the names of the files. */
function keep(out: string, folder: string): readonly string[] {
  const from = join(home, folder);
  if (!existsSync(from)) return [];
  const files = statSync(from).isFile()
    ? [from]
    : readdirSync(from, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name));
  const paths = files
    .map((file) => file.slice(home.length + 1))
    .filter((path) => /\.(?:jsonl?|db|project_root)$/.test(path));
  for (const path of paths) {
    const to = join(out, path);
    mkdirSync(dirname(to), { recursive: true });
    if (path.endsWith('.db')) writeFileSync(`${to}.sql`, statements(join(home, path)));
    else writeFileSync(to, cleaned(readFileSync(join(home, path), 'utf8')));
  }
  return paths;
}

/** Without the long texts of the programs' authors: prompts, lists of skills and agents. What the scripted commands
 * printed begins with a number and stays. */
function cleaned(text: string): string {
  return text
    .split('\n')
    .map((line) => {
      if (line.length < 1500) return line;
      try {
        return JSON.stringify(shortened(JSON.parse(line) as unknown));
      } catch {
        return line;
      }
    })
    .join('\n');
}

function shortened(value: unknown): unknown {
  if (typeof value === 'string')
    return value.length < 300 || /1\n2\n3/.test(value) ? value : `${value.slice(0, 120)}[…]`;
  if (Array.isArray(value)) return value.map(shortened);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, shortened(part)]));
}

/** The statements that make a database of opencode again, with the tables of its conversations. */
function statements(file: string): string {
  const db = new Database(file);
  const made = db
    .prepare<[], { name: string; sql: string; type: string }>(
      "SELECT name, sql, type FROM sqlite_master WHERE tbl_name IN ('project', 'session', 'message', 'part') AND sql IS NOT NULL ORDER BY type DESC, tbl_name != 'project', tbl_name != 'session', name",
    )
    .all();
  const quoted = (value: string | number | null): string =>
    typeof value === 'string' ? `'${cleaned(value).replaceAll("'", "''")}'` : String(value ?? 'NULL');
  const rows = made
    .filter(({ type }) => type === 'table')
    .flatMap(({ name }) =>
      db
        .prepare<[], Record<string, string | number | null>>(`SELECT * FROM "${name}"`)
        .all()
        .map((row) => `INSERT INTO "${name}" VALUES (${Object.values(row).map(quoted).join(',')});`),
    );
  db.close();
  return [...made.map(({ sql }) => `${sql};`), ...rows, ''].join('\n');
}

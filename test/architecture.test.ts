import { spawnSync } from 'node:child_process';
import { mkdtempSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';

/** A part of the tree: the parts that it may import besides itself, and the packages (`node:` stands for all of Node's
 * own, `*` for any). */
interface Layer {
  readonly parts: readonly string[];
  readonly packages: readonly string[];
}

/** The rooms of the kernel, lowest first: each imports those above it in this list that it names. */
const kernel: Readonly<Record<string, Layer>> = {
  'kernel/core': { parts: [], packages: ['string-width'] },
  'kernel/disk': { parts: ['kernel/core'], packages: ['node:', 'chardet', 'iconv-lite'] },
  'kernel/network': { parts: ['kernel/core', 'kernel/disk'], packages: ['node:', 'socks', 'undici'] },
  'kernel/config': {
    parts: ['kernel/core', 'kernel/disk'],
    packages: ['node:', 'ajv', 'jsonc-parser', 'smol-toml'],
  },
  'kernel/tools': {
    parts: ['kernel/core', 'kernel/disk'],
    packages: ['node:', 'ajv', 'diff', 'execa', 'fast-glob', 'htmlparser2', 'ignore', 'unpdf', '@vscode/ripgrep'],
  },
  'kernel/permissions': { parts: ['kernel/core'], packages: ['unbash'] },
  'kernel/providers': {
    parts: ['kernel/core', 'kernel/disk', 'kernel/network'],
    packages: [
      'node:',
      'openai',
      '@anthropic-ai/sdk',
      'undici',
      '@aws-sdk/credential-provider-node',
      '@azure/identity',
      '@smithy/eventstream-codec',
      '@smithy/signature-v4',
      'google-auth-library',
    ],
  },
  'kernel/secrets': {
    parts: ['kernel/core', 'kernel/disk', 'kernel/network', 'kernel/config', 'kernel/providers', 'kernel/tools'],
    packages: ['node:'],
  },
  'kernel/agent': { parts: ['kernel/core', 'kernel/secrets'], packages: [] },
  'kernel/store': {
    parts: ['kernel/core', 'kernel/disk', 'kernel/network'],
    packages: ['node:', 'better-sqlite3'],
  },
};
const kernelRooms = [...Object.keys(kernel), 'kernel/console'];

/** The whole tree, lowest first. A feature imports the kernel and its own folder, never another feature. */
const layers: Readonly<Record<string, Layer>> = {
  ...kernel,
  'kernel/console': { parts: Object.keys(kernel), packages: ['node:', 'commander'] },
  ui: {
    parts: kernelRooms,
    packages: ['node:', 'react', 'ink', 'marked', 'highlight.js', 'fuzzysort', 'string-width', 'wrap-ansi'],
  },
  features: { parts: kernelRooms, packages: ['*'] },
  app: { parts: [...kernelRooms, 'ui', 'features'], packages: ['*'] },
  commands: { parts: [...kernelRooms, 'ui', 'features', 'app'], packages: ['*'] },
  frontends: { parts: [...kernelRooms, 'ui', 'features', 'app', 'commands'], packages: ['*'] },
  cli: { parts: [...kernelRooms, 'ui', 'features', 'app', 'frontends', 'commands'], packages: ['*'] },
};

/** Statements at the start of a line, and dynamic imports anywhere; texts that merely look alike are not. */
const importPattern =
  /^(?:import|export)\b(?:[^;'"`]*?\bfrom\s*)?\s*(['"])([^'"\n]+)\1|\b(?:import|require)\s*\(\s*(['"])([^'"\n]+)\3/gm;

interface Source {
  readonly path: string;
  readonly part: string;
  readonly text: string;
  readonly imports: readonly string[];
}

function readSources(root: string): Source[] {
  return readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => {
      const text = readFileSync(join(root, name), 'utf8');
      const imports = [...text.matchAll(importPattern)].map((match) => match[2] ?? match[4] ?? '');
      return { path: join(root, name), part: partOf(name), text, imports };
    });
}

function target(source: Source, specifier: string): string {
  return resolve(dirname(source.path), specifier).replace(/\.js$/, '');
}

function forbiddenImports(root: string, sources: readonly Source[]): string[] {
  return sources.flatMap((source) => {
    const layer = layers[source.part];
    if (!layer) return [`${relative(root, source.path)}: no part of the tree is called ${source.part}`];
    return source.imports
      .filter((specifier) => !allowed(root, source, specifier, layer))
      .map((specifier) => `${relative(root, source.path)} imports ${specifier}`);
  });
}

function allowed(root: string, source: Source, specifier: string, layer: Layer): boolean {
  if (specifier.startsWith('.')) {
    const inside = relative(root, target(source, specifier));
    if (inside.startsWith('../config/') && inside.endsWith('.json')) return true;
    const part = partOf(inside);
    if (part !== source.part) return layer.parts.includes(part);
    return part !== 'features' || folderOf(inside) === folderOf(relative(root, source.path));
  }
  return layer.packages.some(
    (name) =>
      name === '*' ||
      (name === 'node:' ? specifier.startsWith('node:') : specifier === name || specifier.startsWith(`${name}/`)),
  );
}

/** Returns the first two folders of a path. */
function folderOf(path: string): string {
  return path.split('/').slice(0, 2).join('/');
}

function partOf(path: string): string {
  return path.startsWith('kernel/') ? folderOf(path) : (path.split('/')[0] ?? '');
}

function cycles(root: string, sources: readonly Source[]): string[] {
  const byPath = new Map(sources.map((source) => [source.path.replace(/\.tsx?$/, ''), source]));
  const found: string[] = [];
  const done = new Set<Source>();
  const visit = (source: Source, trail: readonly Source[]): void => {
    if (trail.includes(source)) {
      found.push([...trail.slice(trail.indexOf(source)), source].map((item) => relative(root, item.path)).join(' -> '));
      return;
    }
    if (done.has(source)) return;
    for (const specifier of source.imports.filter((item) => item.startsWith('.'))) {
      const next = byPath.get(target(source, specifier));
      if (next) visit(next, [...trail, source]);
    }
    done.add(source);
  };
  for (const source of sources) visit(source, []);
  return found;
}

/** A second place that drives a model would be a second loop. */
function streamCallers(root: string, sources: readonly Source[]): string[] {
  return sources
    .filter((source) => source.part !== 'kernel/providers' && /\bprovider\.stream\(/.test(source.text))
    .map((source) => relative(root, source.path));
}

/** Everything that starts a process goes through one module of `tools`; another one asks ps(1) where there is no /proc. */
function processStarters(root: string, sources: readonly Source[]): string[] {
  return sources
    .filter(
      ({ imports, text }) =>
        imports.some((item) => item === 'node:child_process' || item === 'execa') ||
        /getBuiltinModule\(['"](?:node:)?child_process/.test(text),
    )
    .map((source) => relative(root, source.path));
}

/** Who opens files in a way of its own, and why. A file that is read unasked goes through disk/bounded-file.ts. */
const openers: Readonly<Record<string, string>> = {
  'kernel/disk/bounded-file.ts': 'the one way',
  'kernel/tools/files/open-file.ts': 'a file that a call names, under its own checks',
  'kernel/tools/search/file-walk.ts': 'folders',
  'kernel/tools/files/atomic-write.ts': 'drafts of its own, and folders',
  'kernel/tools/process/start-child.ts': 'pipes of its own',
  'kernel/tools/sandbox/open-sandbox.ts': 'settings of the kernel',
  'kernel/tools/sandbox/bubblewrap.ts': 'settings of the kernel',
  'kernel/tools/process/watchdog.ts': 'the list of processes, made up by the kernel',
  'kernel/tools/rehearsal/layer-changes.ts': 'what a rehearsed command wrote, bit by bit',
  'kernel/tools/rehearsal/journal.ts': 'journals of its own',
  'kernel/tools/rehearsal/overlay-layers.ts': 'what the kernel says of mounts and processes',
  'kernel/tools/rehearsal/network-use.ts': 'counters of the kernel',
  'kernel/tools/rehearsal/open-rehearsals.ts': 'a file of its own',
  'kernel/tools/rehearsal/rehearsal-view.ts': 'what the kernel says of sockets',
  'kernel/store/database-file.ts': 'drafts of its own, and folders',
  'kernel/store/salvage.ts': 'the database, any size',
  'kernel/store/open-database.ts': 'a lock file of its own',
  'kernel/store/lease.ts': 'the list of processes, made up by the kernel',
  'kernel/config/settings-file.ts': 'drafts of its own',
  'features/history-import/import-sessions.ts': 'a file or pipe that the user names',
  'frontends/headless/final-answer.ts': 'a device or pipe that the user names, to write to it',
  'frontends/repl/job-control.ts': 'what the kernel says of processes',
  'frontends/repl/user-shell.ts': 'a draft of its own',
  'kernel/secrets/known-secrets.ts': 'a key of its own',
  'app/settings.ts': 'a file or pipe that the user names, cut',
  'commands/export-session.ts': 'the file of an export, to write to it',
  'kernel/config/trust-file.ts': 'drafts of its own',
  'kernel/console/print.ts': 'the empty device, in the place of a terminal',
  'kernel/console/waiting-line.ts': 'a row on the terminal, in a thread of its own',
  'kernel/tools/page-worker.ts': 'the page that it is given on descriptor 3',
  'kernel/tools/process/terminal-command.ts': 'a terminal, in a process of its own',
};

const opening = /^(?:readFile(?:Sync)?|open(?:Sync|AsBlob)?|read(?:Sync|v|vSync)?|createReadStream|promises)$/;

/** Modules that take from `node:fs` what opens or reads a file. */
function fileOpeners(root: string, sources: readonly Source[]): string[] {
  return sources
    .filter((source) => {
      const clauses = [...source.text.matchAll(/^import\s+([^'"]*?)\s+from\s+['"]node:fs(?:\/promises)?['"]/gm)].map(
        (match) => match[1] ?? '',
      );
      const names = clauses.flatMap((clause) => clause.match(/[\w*]+/g) ?? []);
      const late = /\b(?:import|require)\s*\(\s*['"]node:fs(?:\/promises)?['"]/.test(source.text);
      return (
        late ||
        clauses.some((clause) => !clause.startsWith('{') && !clause.startsWith('type ')) ||
        names.some((name) => opening.test(name))
      );
    })
    .map((source) => relative(root, source.path));
}

/** A promise kept for later calls keeps a failure as well: one load that failed would break every later call. */
function keptPromises(root: string, sources: readonly Source[]): string[] {
  return sources.flatMap((source) => {
    const names = [...source.text.matchAll(/(?:\blet\s+|#)(\w+)\s*(?::\s*Promise<|=\s*import\()/g)].map(
      (match) => match[1] ?? '',
    );
    const kept = names.filter((name) => new RegExp(`\\b${name}\\s*\\?\\?=`).test(source.text));
    return [...kept, ...(source.text.match(/\?\?=\s*\(*\s*import\(/g) ?? [])].map(
      (name) => `${relative(root, source.path)}: ${name}`,
    );
  });
}

/** The places every byte to a terminal passes: the printer and the questions of the command line, which sanitise, and
 * what gives the screen's writer its terminal. The programs that convert pages and hold the
 * terminals of commands have pipes for their output. */
const terminalWriters = [
  'kernel/console/ask.ts',
  'kernel/console/print.ts',
  'kernel/console/waiting-line.ts',
  'ui/early-frame.ts',
  'kernel/tools/page-worker.ts',
  'kernel/tools/process/terminal-command.ts',
];
/** Comments may name the streams. */
const namesTerminal = new RegExp(
  [
    String.raw`\bprocess(?:\?\.|\.)std(?:out|err)\b`,
    String.raw`\bprocess\[`,
    String.raw`\bstd(?:out|err)\b[^;\n]*\}\s*=\s*process\b`,
    String.raw`import\s*\{[^}]*\bstd(?:out|err)\b[^}]*\}\s*from\s*'(?:node:)?process'`,
    String.raw`\bconsole\.`,
    String.raw`\b(?:write|writev|writeFile|appendFile)Sync\(\s*[12]\b`,
    String.raw`\bfd:\s*[12]\b`,
    String.raw`WriteStream\(`,
    String.raw`\b(?:open|write|append|create)\w*\(\s*['"\x60]/dev/(?:tty|stdout|stderr|fd)`,
  ].join('|'),
);

function terminalNamers(root: string, sources: readonly Source[]): string[] {
  const code = (text: string): string => text.replaceAll(/\/\*[^]*?\*\/|^\s*\/\/.*$/gm, '');
  return sources.filter((source) => namesTerminal.test(code(source.text))).map((source) => relative(root, source.path));
}

/** What readers do not see is listed once: a class of characters of one's own forgets some of them. */
function hiddenClasses(root: string, sources: readonly Source[]): string[] {
  return sources
    .filter((source) => /\\p\{Cf\}|\\u20(?:2a|66|0b)/i.test(source.text))
    .map((source) => relative(root, source.path));
}

const root = fileURLToPath(new URL('../src', import.meta.url));
const sources = readSources(root);
const planted = mkdtempSync(join(tmpdir(), 'agent-architecture-'));
afterAll(() => {
  rmSync(planted, { recursive: true, force: true });
});

function plant(files: Readonly<Record<string, string>>): Source[] {
  rmSync(planted, { recursive: true, force: true });
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(planted, name)), { recursive: true });
    writeFileSync(join(planted, name), text);
  }
  return readSources(planted);
}

test('the check sees the whole source tree', () => {
  expect(sources.length).toBeGreaterThan(10);
});

test('no folder imports what its layer forbids', () => {
  expect(forbiddenImports(root, sources)).toEqual([]);
});

test('no imports form a cycle', () => {
  expect(cycles(root, sources)).toEqual([]);
});

test('only the loop asks a provider for a stream', () => {
  expect(streamCallers(root, sources).filter((path) => path !== 'kernel/agent/request.ts')).toEqual([]);
});

test('only one module starts processes', () => {
  expect(processStarters(root, sources)).toEqual([
    'kernel/disk/bsd-processes.ts',
    'kernel/tools/process/start-child.ts',
  ]);
});

test('a file is opened in one place, or in one that has a reason', () => {
  expect(fileOpeners(root, sources).toSorted()).toEqual(Object.keys(openers).toSorted());
});

test('a planted reader of files is found, however it is imported', () => {
  const bad = plant({
    'tools/a.ts': "import { existsSync, readFileSync } from 'node:fs';\n",
    'tools/b.ts': "import fs from 'node:fs';\n",
    'tools/c.ts': "import * as fs from 'node:fs/promises';\n",
    'tools/d.ts': "import { existsSync, type Stats } from 'node:fs';\n",
    'tools/e.ts': "const fs = await import('node:fs');\n",
    'tools/f.ts': "import {\n  createReadStream,\n} from 'node:fs';\n",
  });
  expect(fileOpeners(planted, bad).toSorted()).toEqual([
    'tools/a.ts',
    'tools/b.ts',
    'tools/c.ts',
    'tools/e.ts',
    'tools/f.ts',
  ]);
});

test('what is loaded at its first use is kept by loadOnce, which forgets a failure', () => {
  expect(keptPromises(root, sources)).toEqual([]);
  const bad = plant({
    'tools/a.ts': 'let loading: Promise<Part> | null = null;\nexport const load = () => (loading ??= part());\n',
    'tools/b.ts': "let part: unknown;\nexport const load = () => (part ??= import('./a.js'));\n",
    'tools/c.ts': 'class C {\n  #part: Promise<Part> | null = null;\n  load() { return this.#part ??= part(); }\n}\n',
    'tools/d.ts': 'let saving: Promise<void> = Promise.resolve();\n',
  });
  expect(keptPromises(planted, bad).map((found) => found.split(':')[0])).toEqual([
    'tools/a.ts',
    'tools/b.ts',
    'tools/c.ts',
  ]);
});

test('only the printer of the command line and the opener of the screen name the terminal', () => {
  expect(terminalNamers(root, sources).filter((path) => !terminalWriters.includes(path))).toEqual([]);
});

test('only one module lists the characters that nobody sees', () => {
  expect(hiddenClasses(root, sources)).toEqual(['kernel/core/text.ts']);
});

test('each planted way around the printer is found, and a comment is none', () => {
  const ways = [
    'process.stdout.write(text);',
    'process.stderr.write(text);',
    "process['stdout'].write(text);",
    'const { stdin, stdout } = process;',
    "import { stdout } from 'node:process';",
    'console.log(text);',
    'writeSync(1, text);',
    'fs.writeFileSync(2, text);',
    "createWriteStream('', { fd: 1 });",
    'new WriteStream(1);',
    "appendFileSync('/dev/tty', text);",
    "open('/dev/stderr');",
  ];
  const bad = plant(
    Object.fromEntries([...ways.entries()].map(([index, text]) => [`cli/way-${index}.ts`, `${text}\n`])),
  );
  expect(terminalNamers(planted, bad)).toHaveLength(ways.length);
  expect(
    terminalNamers(
      planted,
      plant({
        'cli/fine.ts': '/** `process.stdout` fits. */\n// process.stdout too\nconst stdout = listen(process.stdin);\n',
      }),
    ),
  ).toEqual([]);
  expect(hiddenClasses(planted, plant({ 'ui/own.ts': String.raw`text.replace(/[\u202a-\u202e]/g, '');` }))).toEqual([
    'ui/own.ts',
  ]);
});

test('a planted forbidden import, and a planted cycle are each found', () => {
  const bad = plant({
    'ui/planted.ts':
      "import { open } from '../cli/run.js';\nimport { Client } from 'pg';\nconst late = () => import('better-sqlite3');\n",
    'cli/run.ts': 'export const open = 1;\n',
    'features/one/a.ts': "import { b } from '../two/b.js';\nimport { c } from './c.js';\n",
    'features/two/b.ts': 'export const b = 1;\n',
    'features/one/c.ts': 'export const c = 1;\n',
    'kernel/core/a.ts': "import type { B } from './b.js';\n",
    'kernel/core/b.ts': "export * from './a.js';\n",
  });
  expect(forbiddenImports(planted, bad).toSorted()).toEqual([
    'features/one/a.ts imports ../two/b.js',
    'ui/planted.ts imports ../cli/run.js',
    'ui/planted.ts imports better-sqlite3',
    'ui/planted.ts imports pg',
  ]);
  expect(cycles(planted, bad)).toHaveLength(1);
});

test('the linter refuses a list that is spread into arguments, and allows one whose length the source states', () => {
  const folder = mkdtempSync(join(tmpdir(), 'spread-'));
  try {
    const file = join(folder, 'planted.ts');
    writeFileSync(
      file,
      [
        'const flags = ["-h", "--help"] as const;',
        'export function allowed(call: (...words: string[]) => void, more: boolean, ...words: string[]): void {',
        '  call(...flags);',
        '  call(...words);',
        '  call(...(more ? ["-v"] : []));',
        '}',
        'export function planted(target: string[], list: readonly string[]): void {',
        '  const [, ...rest] = list;',
        '  target.push(...list);',
        '  target.push(...rest);',
        '  target.push(...["a", ...list]);',
        '  target.splice(0, 1, ...list.map((text) => text.trim()));',
        '  Math.max(0, ...list.map(Number));',
        '  String.fromCharCode(...list.map(Number));',
        '  [].concat(...list);',
        '  new Array(...list);',
        '}',
      ].join('\n'),
    );
    const config = join(root, '..', 'config', 'oxlint.json');
    const { stdout } = spawnSync('npx', ['oxlint', '--config', config, '-f', 'unix', file], { encoding: 'utf8' });
    const lines = [...stdout.matchAll(/planted\.ts:(\d+):.*no-data-in-arguments/g)].map(([, line]) => Number(line));
    expect(lines.toSorted((one, other) => one - other)).toEqual([9, 10, 11, 12, 13, 14, 15, 16]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('JSON is parsed in one place, which bounds its depth', () => {
  // The page of a session runs in a browser.
  const others = ['kernel/core/json.ts', 'frontends/viewers/page-scripts.ts'];
  const callers = readSources(root)
    .filter((source) => /\bJSON\.parse\b(?!`)/.test(source.text))
    .map((source) => relative(root, source.path));
  expect(callers.toSorted()).toEqual(others.toSorted());
});

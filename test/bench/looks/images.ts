// Makes the images of docs/images: the built program in a real xterm (under Xvfb) and the web page in Chromium, with
// scripted answers in a scratch project. `npm run images` writes them; `npm run images -- --all <folder>` writes every
// scene in both themes, with 16 colors and at 100, 80, 60 and 40 columns. Needs Xvfb, xterm, xdotool, ImageMagick, the
// font DejaVu and Chromium.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

declare const AGENT_ROOT: string | undefined;
const root = typeof AGENT_ROOT === 'string' ? AGENT_ROOT : fileURLToPath(new URL('../../..', import.meta.url));

/** The files of the project that the scenes work on. */
const project: Readonly<Record<string, string>> = {
  'README.md': '# Parser\n',
  'src/total.ts': `export function total(items: number[]): number {
  let sum = 0;
  for (const item of items) sum += item;
  return sum;
}
`,
  'test/total.test.ts': `import { test } from 'node:test';
import assert from 'node:assert';
import { total } from '../src/total.ts';

test('adds numbers', () => assert.equal(total([1, 2, 3]), 6));
test('keeps NaN', () => assert.ok(Number.isNaN(total([1, NaN]))));
`,
  'run-tests.sh': `printf 'ok 1 - adds numbers\\nnot ok 2 - keeps NaN\\n# 1 passed, 1 failed\\n'
exit 1
`,
  'slow.sh': `for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do echo "ok $n - case $n"; sleep 0.5; done
`,
};

const edit = {
  name: 'file_edit',
  arguments: {
    path: 'src/total.ts',
    old_string: '  for (const item of items) sum += item;',
    new_string: '  for (const item of items) {\n    if (Number.isNaN(item)) continue;\n    sum += item;\n  }',
  },
};

const plan = `# Skip NaN in \`total\`

1. Change the loop in \`src/total.ts\` so that it skips NaN.
2. Change the test that expects NaN.
3. Run the tests.

Nothing else reads \`total\`.`;

interface Scene {
  readonly args?: readonly string[];
  readonly turns: readonly unknown[];
  /** Keys in the order they are typed: text, or \`key:NAME\` for a key of X. */
  readonly keys: readonly string[];
  /** The screen changes as long as a command runs: the image is taken after this time. */
  readonly afterMs?: number;
}

const scenes: Readonly<Record<string, Scene>> = {
  first: { args: [], turns: [], keys: [] },
  turn: {
    turns: [
      {
        text: "I'll look at the project first.",
        calls: [{ name: 'file_read', arguments: { path: 'src/total.ts' } }],
      },
      {
        text: "`total` adds NaN too. I'll skip it and run the tests.",
        calls: [edit, { name: 'bash', arguments: { command: 'sh run-tests.sh' } }],
      },
      {
        text: 'One test still expects NaN: `test/total.test.ts:6`. Shall I change it?',
      },
    ],
    keys: ['Make total skip NaN, then run the tests', 'key:Return'],
  },
  approval: {
    args: ['--approval', 'mutating'],
    turns: [{ text: "I'll skip NaN in `total`.", calls: [edit] }],
    keys: ['Make total skip NaN', 'key:Return'],
  },
  dangerous: {
    turns: [
      { text: "I'll clear the build.", calls: [{ name: 'bash', arguments: { command: 'rm -rf test && echo done' } }] },
    ],
    keys: ['Clear the build', 'key:Return'],
  },
  plan: {
    turns: [{ text: '', calls: [{ name: 'propose_plan', arguments: { plan } }] }],
    keys: ['/plan', 'key:Return', 'Make total skip NaN', 'key:Return'],
  },
  running: {
    turns: [
      { text: "I'll run the tests.", calls: [{ name: 'bash', arguments: { command: 'sh slow.sh' } }] },
      { text: 'Done.' },
    ],
    keys: ['Run the tests', 'key:Return', 'key:wait', 'Then fix what fails', 'key:Return', 'and read the'],
    afterMs: 1_500,
  },
  menu: { turns: [], keys: ['/'] },
};

interface Look {
  readonly theme: 'dark' | 'light';
  readonly columns: number;
  readonly rows: number;
  readonly colors: 16 | 256;
}

const screenColors = { dark: ['#1e1f22', '#e6e6e3'], light: ['#ffffff', '#1c1e21'] } as const;

interface Place {
  readonly home: string;
  readonly work: string;
  readonly environment: NodeJS.ProcessEnv;
}

function scratch(display: string, turns: readonly unknown[]): Place {
  const home = mkdtempSync(join(tmpdir(), 'agent-images-'));
  const work = join(home, 'parser');
  for (const [name, text] of Object.entries(project)) {
    const path = join(work, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
  writeFileSync(join(work, 'demo.json'), JSON.stringify({ turns }));
  const environment = { PATH: process.env.PATH ?? '', HOME: home, LANG: 'C.UTF-8', DISPLAY: display, SHELL: '/bin/sh' };
  execFileSync('git', ['init', '-q', '-b', 'main', work], { env: environment });
  return { home, work, environment };
}

/** Returns the image of the whole display, as PNG. */
function shoot(display: string): Buffer {
  return execFileSync('import', ['-display', display, '-window', 'root', 'png:-'], { maxBuffer: 64 * 1024 * 1024 });
}

function hash(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** Returns the image once it was the same three times in a row. */
async function settled(display: string): Promise<Buffer> {
  let last = '';
  let same = 0;
  for (let tries = 0; tries < 100; tries++) {
    await wait(250);
    const image = shoot(display);
    const now = hash(execFileSync('convert', ['png:-', 'rgb:-'], { input: image, maxBuffer: 256 * 1024 * 1024 }));
    same = now === last ? same + 1 : 0;
    last = now;
    if (same >= 3) return image;
  }
  throw new Error('the screen never settled');
}

async function press(display: string, keys: readonly string[]): Promise<void> {
  for (const key of keys) {
    const name = /^key:(.+)$/.exec(key)?.[1];
    if (name === 'wait') await wait(1_200);
    else if (name === undefined) execFileSync('xdotool', ['type', '--delay', '15', key], xEnvironment(display));
    else execFileSync('xdotool', ['key', name], xEnvironment(display));
    await wait(400);
  }
}

function xEnvironment(display: string): { readonly env: NodeJS.ProcessEnv } {
  return { env: { PATH: process.env.PATH ?? '', DISPLAY: display } };
}

let displays = 90 + (process.pid % 100);

/** Plays a scene in a terminal of its own and returns the image. */
async function play(scene: Scene, look: Look): Promise<Buffer> {
  const display = `:${displays++}`;
  const { home, work, environment } = scratch(display, scene.turns);
  const [ground, text] = screenColors[look.theme];
  // The cell of the font at this size.
  const size = `${look.columns * 9 + 14}x${look.rows * 19 + 8}`;
  const server = spawn('Xvfb', [display, '-screen', '0', `${size}x24`, '-nolisten', 'tcp'], { stdio: 'ignore' });
  await wait(600);
  const model = scene.args === undefined || scene.turns.length > 0 ? ['-m', 'offline/demo.json'] : [];
  const terminal = spawn(
    'xterm',
    [
      ...['-fa', 'DejaVu Sans Mono', '-fs', '11', '-geometry', `${look.columns}x${look.rows}+0+0`],
      ...['-bg', ground, '-fg', text, '-cr', text, '-b', '6', '+sb', '-bw', '0'],
      // xterm removes COLORTERM, so the program draws with 256 colors.
      ...['-tn', look.colors === 16 ? 'xterm' : 'xterm-256color', '-e', process.execPath, join(root, 'bin/agent.js')],
      ...model,
      ...(scene.args ?? []),
    ],
    {
      cwd: work,
      env: environment,
      stdio: 'ignore',
    },
  );
  try {
    await settled(display);
    await press(display, scene.keys);
    if (scene.afterMs === undefined) return await settled(display);
    await wait(scene.afterMs);
    return shoot(display);
  } finally {
    await end(terminal);
    await end(server);
    rmSync(home, { recursive: true, force: true });
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const exited = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  await Promise.race([exited, wait(3_000)]);
  child.kill('SIGKILL');
}

/** Takes images of a session that waits for an answer, in Chromium. */
async function page(theme: Look['theme'], width: number): Promise<Buffer> {
  const display = `:${displays++}`;
  const turns = [
    ...(scenes.turn?.turns.slice(0, 2) ?? []),
    { text: "I'll clear the old tests.", calls: [{ name: 'bash', arguments: { command: 'rm -rf test' } }] },
  ];
  const { home, work, environment } = scratch(display, turns);
  const options = { cwd: work, env: environment };
  const { spawn: spawnPty } = await import('@lydell/node-pty');
  const terminal = spawnPty(process.execPath, [join(root, 'bin/agent.js'), '-m', 'offline/demo.json'], {
    ...options,
    cols: 100,
    rows: 30,
  });
  terminal.onData(() => undefined);
  const server = spawn(process.execPath, [join(root, 'bin/agent.js'), 'serve'], {
    ...options,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
  try {
    await wait(1_500);
    terminal.write('Make total skip NaN, then run the tests\r');
    const address = await new Promise<string>((resolve) => {
      let text = '';
      server.stdout.on('data', (part: Buffer) => {
        text += part.toString();
        const found = /http:\/\/\S+/.exec(text)?.[0];
        if (found !== undefined) resolve(found);
      });
    });
    const opened = await browser.newPage({ colorScheme: theme, viewport: { width, height: 900 } });
    await wait(2_000);
    await opened.goto(address);
    await opened.click('.list a');
    await opened.waitForSelector('.ask');
    for (const summary of await opened.$$('.is-call > details > summary')) await summary.click();
    // The input of the page stays at the end of the window: the window shows the whole page.
    const rows = (await opened.evaluate('document.documentElement.scrollHeight')) as number;
    await opened.setViewportSize({ width, height: rows });
    await wait(1_000);
    return await opened.screenshot();
  } finally {
    await browser.close();
    terminal.kill('SIGKILL');
    await end(server);
    rmSync(home, { recursive: true, force: true });
  }
}

const wide: Look = { theme: 'dark', columns: 98, rows: 31, colors: 256 };
/** The images that the documentation shows. */
const shown: readonly (readonly [name: string, make: () => Promise<Buffer>])[] = [
  ['first', () => play(scenes.first as Scene, { ...wide, rows: 14 })],
  ['turn', () => play(scenes.turn as Scene, { ...wide, rows: 35 })],
  ['turn-light', () => play(scenes.turn as Scene, { ...wide, theme: 'light', rows: 35 })],
  ['approval', () => play(scenes.approval as Scene, { ...wide, rows: 22 })],
  ['dangerous', () => play(scenes.dangerous as Scene, { ...wide, rows: 18 })],
  ['plan', () => play(scenes.plan as Scene, { ...wide, rows: 26 })],
  ['running', () => play(scenes.running as Scene, { ...wide, rows: 20 })],
  ['second-screen', () => page('light', 1_000)],
  ['second-screen-narrow', () => page('dark', 420)],
];

async function all(folder: string, only: readonly string[]): Promise<void> {
  const looks = (['dark', 'light'] as const).flatMap((theme) => [
    ...[100, 80, 60, 40].map((columns): Look => ({ theme, columns, rows: columns === 40 ? 15 : 36, colors: 256 })),
    { theme, columns: 80, rows: 36, colors: 16 } as const,
  ]);
  for (const [name, scene] of Object.entries(scenes)) {
    if (only.length > 0 && !only.includes(name)) continue;
    for (const look of looks) {
      const file = join(folder, `${name}-${look.theme}-${look.columns}-${look.colors}.png`);
      writeFileSync(file, await play(scene, look));
      console.log(file);
    }
  }
}

const [first, folder = '', ...names] = process.argv.slice(2);
if (first === '--all') {
  mkdirSync(folder, { recursive: true });
  await all(folder, names);
} else {
  const only = process.argv.slice(2);
  for (const [name, make] of shown) {
    if (only.length > 0 && !only.includes(name)) continue;
    const file = join(root, 'docs/images', `${name}.png`);
    writeFileSync(file, await make());
    console.log(file);
  }
}

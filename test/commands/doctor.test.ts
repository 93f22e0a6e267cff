import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { DoctorCheck } from '../../src/kernel/console/command.js';
import {
  checkConfig,
  checkDisk,
  checkKeys,
  checkRipgrep,
  checkStore,
  checkTerminal,
  checkNetwork,
} from '../../src/commands/doctor-checks.js';
import { checkWeb } from '../../src/features/web/check-web.js';
import { type DoctorFacts, findRipgrep, reachesServer, runDoctor, terminalFacts } from '../../src/commands/doctor.js';

const terminal = {
  isTerminal: true,
  term: 'xterm-256color',
  colorBits: 24,
  noColor: false,
  columns: 80,
  rows: 24,
  unicode: true,
};
const facts: DoctorFacts = {
  nodeVersion: 'v20.20.2',
  terminal,
  keys: [
    { provider: 'openai', variable: 'OPENAI_API_KEY', set: true },
    { provider: 'groq', variable: 'GROQ_API_KEY', set: false },
  ],
  kept: { file: '/c/keys.json', names: [], mode: null },
  servers: [{ name: 'ollama', host: '127.0.0.1', port: 11434 }],
  ripgrep: async () => ({ source: 'bundled', path: '/x/rg' }),
  config: async () => ({ file: '/c/config.json', problems: [] }),
  store: {
    version: async () => '3.53.2',
    facts: async () => ({ file: '/d/agent.db', mode: 0o600, writable: true, reason: '', refused: null }),
    freeBytes: async () => 5_000 * 1_048_576,
    leases: async () => [],
  },
  reaches: async () => false,
};

async function doctor(change: Partial<DoctorFacts> = {}, json = false): Promise<{ code: number; out: string }> {
  let out = '';
  const code = await runDoctor(
    {
      stdout: {
        write: (text: string) => {
          out += text;
        },
      },
      json,
    },
    { ...facts, ...change },
  );
  return { code, out };
}

function makeDirectory(): string {
  const root = mkdtempSync(join(tmpdir(), 'agent-doctor-'));
  onTestFinished(() => {
    rmSync(root, { recursive: true, force: true });
  });
  return root;
}

test('a healthy machine: one line a check, exit 0', async () => {
  expect(await doctor()).toEqual({
    code: 0,
    out: [
      'ok    node        v20.20.2',
      'ok    sqlite      3.53.2',
      'ok    ripgrep     bundled, /x/rg',
      'ok    terminal    xterm-256color, true colour, 80×24, Unicode',
      'ok    keys        set: OPENAI_API_KEY (openai); not set: GROQ_API_KEY',
      'ok    ollama      not running at 127.0.0.1:11434',
      'ok    config      /c/config.json',
      'ok    store       /d/agent.db, mode 0600',
      'ok    disk        5000 MB free',
      '',
    ].join('\n'),
  });
});

test('a probe that throws is a failed check with its message and hint, the others still run', async () => {
  const broken = {
    store: {
      ...facts.store,
      version: async () => {
        throw Object.assign(new Error('cannot load'), { hint: 'Run: npm rebuild' });
      },
    },
    more: async () => {
      throw new Error('no sandbox');
    },
  };
  const { code, out } = await doctor(broken, true);
  const checks = JSON.parse(out) as DoctorCheck[];
  expect([code, checks.length, checks.filter((check) => check.status === 'fail')]).toEqual([
    1,
    10,
    [
      { name: 'sqlite', status: 'fail', detail: 'cannot load', fix: 'Run: npm rebuild' },
      { name: 'checks', status: 'fail', detail: 'no sandbox', fix: 'Run agent doctor --debug for more.' },
    ],
  ]);
});

test('a warning shows what to do and is no failure', async () => {
  const { code, out } = await doctor({
    ripgrep: async () => null,
    more: async () => [{ name: 'sandbox', status: 'ok', detail: 'works', fix: null }],
  });
  expect([code, out.split('\n').filter((line) => /ripgrep|Install|sandbox/.test(line))]).toEqual([
    0,
    [
      'warn  ripgrep     not found; a slower search of our own takes its place',
      '                  Install ripgrep, or run npm install with optional packages.',
      'ok    sandbox     works',
    ],
  ]);
});

test('each check tells fine, worse and broken apart', () => {
  const problem = { message: 'c.json:1:2: bad', hint: 'mend it', key: 'x', where: 'c.json' };
  const store = { file: '/d', mode: 0o644, writable: true, reason: '', refused: null };
  const rows = [
    checkRipgrep(null),
    checkTerminal({ ...terminal, columns: 30 }),
    checkTerminal({ ...terminal, unicode: false }),
    checkTerminal({ ...terminal, isTerminal: false, unicode: false }),
    checkKeys([{ provider: 'a', variable: 'A', set: false }], { file: 'k', names: [], mode: null }),
    checkKeys([], { file: 'k', names: ['a'], mode: 0o600 }),
    checkKeys([], { file: 'k', names: ['a'], mode: 0o644 }),
    checkConfig('f', [problem, problem]),
    checkStore(store),
    checkStore({ ...store, mode: null }),
    checkStore({ ...store, writable: false, reason: 'EACCES' }),
    ...[5, 100, 1000].map((megabytes) => checkDisk(megabytes * 1_048_576)),
  ];
  expect(rows.map((row) => row.status)).toEqual([
    'warn',
    'warn',
    'warn',
    'ok',
    'warn',
    'ok',
    'warn',
    'fail',
    'warn',
    'ok',
    'fail',
    'fail',
    'warn',
    'ok',
  ]);
  expect(rows.filter((row) => row.status !== 'ok' && row.fix === null)).toEqual([]);
  expect(rows[7]).toEqual({ name: 'config', status: 'fail', detail: 'c.json:1:2: bad, and 1 more', fix: 'mend it' });
});

test('a port is found open or closed', async () => {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  const open = await reachesServer({ name: 'x', host: '127.0.0.1', port });
  await new Promise((resolve) => {
    server.close(resolve);
  });
  expect([open, await reachesServer({ name: 'x', host: '127.0.0.1', port })]).toEqual([true, false]);
});

test('ripgrep is found where it is, and the terminal described from its stream and locale', async () => {
  const root = makeDirectory();
  writeFileSync(join(root, 'rg'), '#!/bin/sh\n', { mode: 0o755 });
  const found = await findRipgrep({ PATH: `${root}/none:${root}` });
  expect(found?.source === 'bundled' ? existsSync(found.path) : found).toEqual(
    found?.source === 'bundled' ? true : { source: 'system', path: join(root, 'rg') },
  );
  expect([
    terminalFacts({}, {}),
    terminalFacts(
      { isTTY: true, columns: 100, rows: 40, getColorDepth: () => 8 },
      { TERM: 'xterm', NO_COLOR: '1', LANG: 'C', LC_ALL: 'C.UTF-8' },
    ),
  ]).toEqual([
    { isTerminal: false, term: '', colorBits: 1, noColor: false, columns: 80, rows: 24, unicode: false },
    { isTerminal: true, term: 'xterm', colorBits: 8, noColor: true, columns: 100, rows: 40, unicode: true },
  ]);
});

test('behind a proxy, the web tools say what they cannot check', () => {
  const config = (proxy: 'env' | 'none', ...toolsets: readonly string[]) => ({
    tools: { toolsets, limits: {} },
    web: { search: { provider: 'auto' as const, baseUrl: null }, allowDomains: [], allowLocal: [], proxy, api: [] },
  });
  const env = { https_proxy: 'http://user:secret@proxy.example:3128' };
  const status = (...checks: readonly DoctorCheck[]) => checks.map((check) => `${check.status} ${check.detail}`).join();
  expect(checkWeb(config('env', 'fs'), env)).toEqual([]);
  expect(status(...checkWeb(config('env', 'web'), env))).toMatch(
    /^warn the proxy of https_proxy resolves names itself; /,
  );
  expect(status(...checkWeb(config('none', 'web'), env), ...checkWeb(config('env', 'web'), {}))).toMatch(
    /^ok [^,]*,ok [^,]*$/,
  );
});

test('doctor names the proxies without their passwords, and a value that is none', () => {
  const status = (...checks: readonly DoctorCheck[]) => checks.map((check) => `${check.status} ${check.detail}`).join();
  expect(checkNetwork({})).toEqual([]);
  expect(status(...checkNetwork({ https_proxy: 'u:secret@p:1', ALL_PROXY: 'socks5://s' }))).toMatch(
    /^ok .*http:\/\/p:1 \(https_proxy\), socks5:\/\/s:1080 \(ALL_PROXY\)/,
  );
  expect(status(...checkNetwork({ NO_PROXY: '10.0.0.0/40' }))).toMatch(/^fail .*NO_PROXY contains 10\.0\.0\.0\/40/);
  expect(status(...checkNetwork({ HTTPS_PROXY: 'http://:1' }))).toMatch(/^fail .*HTTPS_PROXY=http:\/\/:1 is not/);
});

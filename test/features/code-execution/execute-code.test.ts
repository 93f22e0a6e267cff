import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import hostile from '../../../fixtures/tools/hostile-code.json' with { type: 'json' };
import type { Registry } from '../../../src/kernel/core/tool.js';
import { processesMarked } from '../../../src/kernel/tools/process/watchdog.js';
import { codeTools } from '../../../src/features/code-execution/execute-code.js';
import { bubblewrapWorks } from '../../kernel/tools/sandbox/confined-child.js';
import { context, envelopeOf, tree } from '../../kernel/tools/workbench.js';
import { registryOf } from '../registered.js';

const server = createServer((socket) => socket.end());
let reached = 0;
server.on('connection', () => reached++);
let port = 0;
let tools: Registry = registryOf([]);
const notices: string[] = [];
const options = {
  // No other process of the machine has this folder in its PATH.
  env: { ...process.env, PATH: `${process.env.PATH}:${tree()}`, OPENAI_API_KEY: 'sk-not-a-key' },
  home: homedir(),
  notify: (message: string) => notices.push(message),
  tried: join(tree(), 'cache', 'tried'),
};

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  port = typeof address === 'object' && address !== null ? address.port : 0;
  if (bubblewrapWorks) tools = registryOf(await codeTools(options));
});
afterAll(() => {
  server.close();
});

const place = tree({ 'file.txt': 'of the project' });
const execute = (args: object, changed: Parameters<typeof context>[1] = {}) =>
  envelopeOf('execute_code', args, context(place, changed), tools);

test('without a sandbox there is no tool, and the person is told why', async () => {
  const told: string[] = [];
  const notify = (message: string): void => void told.push(message);
  expect(await codeTools({ ...options, bubblewrap: null, notify })).toEqual([]);
  expect(told).toMatchObject([expect.stringMatching(/^execute_code is not offered: the sandbox /)]);
});

describe.skipIf(!bubblewrapWorks)('in the sandbox', () => {
  test('it is tried once on a machine, and again once bubblewrap is another', async () => {
    const folder = tree();
    const log = join(folder, 'started');
    const bubblewrap = join(folder, 'bwrap');
    const install = (note: string): void => {
      writeFileSync(bubblewrap, `#!/bin/sh\n# ${note}\necho started >>'${log}'\nexec bwrap "$@"\n`, {
        mode: 0o755,
      });
    };
    const started = async (tried: string): Promise<number> => {
      writeFileSync(log, '');
      expect(await codeTools({ ...options, bubblewrap, tried })).toHaveLength(1);
      return readFileSync(log, 'utf8').split('\n').length - 1;
    };
    const tried = join(folder, 'tried');
    install('one');
    expect([await started(tried), await started(tried), await started(join(folder, 'other'))]).toEqual([2, 0, 2]);
    rmSync(bubblewrap);
    install('two');
    expect(await started(tried)).toBe(2);
    writeFileSync(tried, 'no such text');
    expect(await started(tried)).toBe(2);
  });

  test('where it is known to work it is opened once, with the first call', async () => {
    const temporary = tree();
    vi.stubEnv('TMPDIR', temporary);
    try {
      const known = registryOf(await codeTools(options));
      expect(readdirSync(temporary)).toEqual([]);
      const run = () => envelopeOf('execute_code', { code: 'print(1)' }, context(place), known);
      expect(await run()).toEqual({ output: '1\n', exit_code: 0 });
      expect(await run()).toEqual({ output: '1\n', exit_code: 0 });
      expect(readdirSync(temporary)).toHaveLength(1);
    } finally {
      vi.unstubAllEnvs();
    }
  });

  test('processes that take too much memory together are ended, each of them being small', async () => {
    const small = registryOf(await codeTools({ ...options, maxMemoryBytes: 200 * 1024 ** 2 }));
    const code = `import os, time
for number in range(5):
    if os.fork() == 0:
        held = b'x' * (60 * 1024 * 1024)
        time.sleep(60)
time.sleep(60)`;
    expect(await envelopeOf('execute_code', { code }, context(place), small)).toMatchObject({
      code: 'execution_failed',
      error: expect.stringContaining('used more than 200 MB of memory together') as string,
    });
  });

  test('code runs and prints, in both languages, with its exit code', async () => {
    expect(notices).toEqual([]);
    expect(await execute({ code: 'print(6 * 7)' })).toEqual({ output: '42\n', exit_code: 0 });
    expect(await execute({ code: 'console.log(6 * 7)', language: 'node' })).toEqual({ output: '42\n', exit_code: 0 });
    expect(
      await execute({ code: 'import { sep } from "node:path"; console.log(await sep)', language: 'node' }),
    ).toEqual({
      output: '/\n',
      exit_code: 0,
    });
    expect(await execute({ code: 'import sys\nsys.exit(3)' })).toEqual({ output: '', exit_code: 3 });
  });

  test('an error shows the line it came from', async () => {
    expect(await execute({ code: 'x = 1\nraise ValueError("é")' })).toMatchObject({
      output: expect.stringMatching(/line 2, in <module>\n {4}raise ValueError\("é"\)\nValueError: é/) as string,
      exit_code: 1,
    });
  });

  test('each call starts in an empty directory and leaves nothing to the next', async () => {
    const writes = "open('kept.txt', 'w').write('x')\nimport os\nprint(os.listdir('.'))";
    expect(await execute({ code: writes })).toEqual({ output: "['kept.txt']\n", exit_code: 0 });
    expect(await execute({ code: 'import os\nprint(os.listdir("."))' })).toEqual({ output: '[]\n', exit_code: 0 });
    expect(readdirSync(place)).toEqual(['file.txt']);
  });

  test.each(hostile.programs)('code that tries $tries in $language is held', async (sample) => {
    const before = reached;
    const code = sample.code.replaceAll('PORT', String(port)).replaceAll('PLACE', JSON.stringify(place));
    const { language, output, or = output, seconds = 20, kept = '~/none' } = sample;
    const result = JSON.stringify(await execute({ code, language, timeout_seconds: seconds }));
    // On a busy machine the limit of memory may come first.
    if (!result.includes(or)) expect(result).toContain(output);
    expect(result.length).toBeLessThan(1_200_000);
    expect(reached).toBe(before);
    const files = ['/etc/agent-was-here', '/usr/agent-was-here', kept.replace('~', homedir())];
    expect(files.filter((file) => existsSync(file))).toEqual([]);
    expect(leftBehind()).toEqual([]);
  });

  test('a call that is cancelled ends with all it had started', async () => {
    const controller = new AbortController();
    const running = execute(
      { code: 'import time\nprint("going", flush=True)\ntime.sleep(60)' },
      { signal: controller.signal, progress: () => controller.abort() },
    );
    expect(await running).toMatchObject({ code: 'cancelled', details: { output: 'going\n' } });
  });

  test('what cannot be meant is refused before anything starts', async () => {
    for (const args of [
      { code: ' ' },
      { code: 'x'.repeat(65_537) },
      { code: '1', language: 'ruby' },
      { code: '1', timeout_seconds: 301 },
    ])
      expect(await execute(args)).toMatchObject({ code: 'invalid_args' });
  });
});

/** Processes of these calls that are still there. */
function leftBehind(): readonly number[] {
  return processesMarked(`PATH=${options.env.PATH}`);
}

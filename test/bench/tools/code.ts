import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import fixture from '../../../fixtures/tools/hostile-code.json' with { type: 'json' };
import { noSession } from '../../../src/kernel/core/tool.js';
import { codeTools } from '../../../src/features/code-execution/execute-code.js';

// `npm run t:code`: the programs of fixtures/tools/hostile-code.json in the sandbox alone. Prints a line for each; fails
// where one was not held. Without bubblewrap they are counted as skipped.

const place = mkdtempSync(join(tmpdir(), 'agent-code-bench-'));
let reached = 0;
const server = createServer((socket) => {
  reached++;
  socket.end();
});
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const address = server.address();
const port = typeof address === 'object' && address !== null ? address.port : 0;
const [tool] = await codeTools({
  env: process.env,
  home: homedir(),
  tried: join(place, 'tried'),
  notify: (message) => {
    console.log(message);
  },
});

let failures = 0;
for (const { tries, language, code, output, seconds = 20 } of tool ? fixture.programs : []) {
  const start = performance.now();
  const outcome = await tool?.run(
    {
      language,
      code: code.replaceAll('PORT', String(port)).replaceAll('PLACE', JSON.stringify(place)),
      timeout_seconds: seconds,
    },
    {
      cwd: place,
      session: noSession,
      signal: new AbortController().signal,
      sandbox: 'off',
      limits: { timeoutMs: null, maxOutputBytes: 102_400 },
      knownFiles: new Map(),
      eventOutput: () => null,
      progress: () => {},
    },
  );
  const isHeld = JSON.stringify(outcome?.envelope).includes(output) && reached === 0;
  if (!isHeld) failures++;
  console.log(
    `${isHeld ? 'held' : 'NOT HELD'}  ${language.padEnd(6)} ${tries}, ${(performance.now() - start).toFixed(0)} ms`,
  );
}
console.log(
  `${tool ? fixture.programs.length : 0} programs, ${failures} not held, ${tool ? 0 : fixture.programs.length} skipped`,
);
server.close();
rmSync(place, { recursive: true, force: true });
process.exitCode = failures === 0 ? 0 : 1;

// npm run t:stream-input [turns]: 10,000 lines of another program, and a reader that is slow. Each message is a turn with
// its own result, in order; each request is answered; the memory of the program stays within bounds.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

declare const AGENT_ROOT: string;

const lineCount = 10_000;
const turns = Number(process.argv[2] ?? 1000);
/** The reader takes so much at a time, and rests in between. */
const readBytes = 64 * 1024;
const restMs = 5;

interface Printed {
  readonly type: string;
  readonly text?: string;
  readonly response?: { readonly request_id: string; readonly subtype: string };
}

const home = mkdtempSync(join(tmpdir(), 'stream-input-'));
const args = [join(AGENT_ROOT, 'bin/agent.js'), '-p', '-m', 'offline/offline', '--no-tools'];
const formats = ['--input-format', 'stream-json', '--output-format', 'stream-json'];
const child = spawn(process.execPath, [...args, ...formats], {
  cwd: home,
  env: { PATH: process.env['PATH'], HOME: home },
  stdio: ['pipe', 'pipe', 'inherit'],
});

const begun = performance.now();
const every = Math.floor(lineCount / turns);
const sent = Array.from({ length: lineCount }, (_, n) =>
  n % every === 0
    ? { type: 'user', message: { role: 'user', content: `message ${n} \u2028 ${'x'.repeat(200)}` } }
    : { type: 'control_request', request_id: `r${n}`, request: { subtype: n % 2 === 0 ? 'initialize' : 'unknown' } },
);
child.stdin.end(sent.map((line) => `${JSON.stringify(line)}\n`).join(''));

let text = '';
let peakKb = 0;
const rest = (): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, restMs);
  });
child.stdout.setEncoding('utf8');
const code = new Promise<number | null>((resolve) => {
  child.once('exit', resolve);
});
for (let isOpen = true; isOpen;) {
  await rest();
  const part: unknown = child.stdout.read(readBytes) ?? child.stdout.read();
  if (typeof part === 'string') text += part;
  try {
    peakKb = Math.max(
      peakKb,
      Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1] ?? 0),
    );
  } catch {
    /* it has ended */
  }
  isOpen =
    !child.stdout.readableEnded && !(child.exitCode !== null && part === null && child.stdout.readableLength === 0);
}
const exitCode = await code;
const printed = text
  .split('\n')
  .filter((line) => line !== '')
  .map((line) => JSON.parse(line) as Printed);
const results = printed.filter(({ type }) => type === 'result').length;
const answers = printed.flatMap(({ response }) => response?.request_id ?? []);
const wanted = sent.flatMap((line) => line.request_id ?? []);
const inOrder = JSON.stringify(answers) === JSON.stringify(wanted);
const asked = sent.length - wanted.length;
console.log(`lines sent: ${sent.length}; turns: ${asked}; results: ${results}; exit code ${exitCode}`);
console.log(`requests: ${wanted.length}; answered, in order: ${inOrder ? answers.length : 'no'}`);
console.log(
  `printed: ${printed.length} lines, ${text.length} characters; peak memory: ${Math.round(peakKb / 1024)} MB`,
);
console.log(
  `took ${Math.round((performance.now() - begun) / 1000)} s with a reader of ${readBytes} bytes every ${restMs} ms`,
);
rmSync(home, { recursive: true, force: true });
process.exitCode = results === asked && inOrder && exitCode === 0 && peakKb < 400 * 1024 ? 0 : 1;

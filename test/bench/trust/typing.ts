import { spawn } from '@lydell/node-pty';
import xterm from '@xterm/headless';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** `npm run t:typing -- [minutes]`: drives the built program in a pseudo-terminal while questions before dangerous
 * calls come, typing at 20 to 400 ms a key across each. Counts questions that typing answered and keys that are not in
 * the draft. Ends with 1 where either is not 0. */
const minutes = Number(process.argv[2] ?? 10);
const program = process.env['AGENT_PROGRAM'] ?? join(AGENT_ROOT, 'bin/agent.js');
const words = [
  'why',
  'yesterday',
  'you',
  'yes',
  'please',
  'try',
  'today',
  'a',
  'all',
  'n',
  'no',
  't',
  'then',
  '1',
  '2',
  '3',
  '4',
  'y',
  'tell',
  'not',
  'any',
];
const callsOfRun = 40;
/** A machine that is held up types with pauses itself: such a round proves nothing. */
const longestGapMs = 500;
const asked = 'Run this command?';

declare const AGENT_ROOT: string;

interface Driven {
  type(keys: string): void;
  text(): string;
  until(holds: () => boolean, what: string): Promise<void>;
  end(): Promise<void>;
}

const sleep = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, milliseconds);
  });
const between = (low: number, high: number): number => low + Math.random() * (high - low);

function drive(root: string): Driven {
  const calls = Array.from({ length: callsOfRun }, (_, index) => ({
    name: 'bash',
    arguments: { command: `rm -rf docs/part-${index}` },
  }));
  const script = join(root, 'script.json');
  writeFileSync(
    script,
    JSON.stringify({
      turns: [
        ...calls.map((call) => ({ delay_ms: Math.round(between(300, 2_500)), calls: [call] })),
        { text: 'That is all.' },
      ],
    }),
  );
  const home = join(root, 'home');
  const work = join(root, 'work');
  mkdirSync(home);
  for (const call of calls.keys()) mkdirSync(join(work, 'docs', `part-${call}`), { recursive: true });
  const terminal = new xterm.Terminal({ cols: 160, rows: 30, allowProposedApi: true });
  const env = {
    PATH: process.env.PATH ?? '',
    HOME: home,
    AGENT_HOME: join(home, '.agent'),
    LANG: 'C.UTF-8',
    NO_COLOR: '1',
  };
  const args = [program, '-m', `offline/${script}`, '--max-tool-turns', '1000', 'go'];
  const pty = spawn(process.execPath, args, { name: 'xterm-256color', cols: 160, rows: 30, cwd: work, env });
  pty.onData((chunk) => {
    terminal.write(chunk);
  });
  terminal.onData((reply) => {
    pty.write(reply);
  });
  let ended = false;
  const exited = new Promise<void>((resolve) => {
    pty.onExit(() => {
      ended = true;
      resolve();
    });
  });
  const text = (): string => {
    const { active } = terminal.buffer;
    return Array.from(
      { length: terminal.rows },
      (_, row) => active.getLine(active.baseY + row)?.translateToString(true) ?? '',
    )
      .join('\n')
      .trimEnd();
  };
  return {
    text,
    type: (keys) => {
      pty.write(keys);
    },
    until: async (holds, what) => {
      const endMs = Date.now() + 60_000;
      while (!holds()) {
        if (Date.now() > endMs || ended) throw new Error(`${what} never came. The screen:\n${text()}`);
        await sleep(20);
      }
    },
    end: async () => {
      pty.kill('SIGKILL');
      await exited;
    },
  };
}

/** What stands in the input, wrapped rows put together. */
function draftOf(screen: string): string {
  const rows = screen.split('\n');
  const from = rows.findLastIndex((row) => row.startsWith('❯ ') && !row.startsWith('❯ No'));
  return from < 0
    ? ''
    : rows
        .slice(from)
        .map((row) => row.slice(2))
        .join('');
}

interface Round {
  readonly keys: number;
  readonly answered: boolean;
  readonly lost: number;
  readonly heldUp: boolean;
}

/** Types from before the question comes until some time after it stands there. */
async function typeAcross(driven: Driven, isWhole: () => boolean): Promise<Round> {
  const slowest = between(40, 400);
  let typed = '';
  let keys = 0;
  let longestMs = 0;
  let lastMs = Date.now();
  let afterMs = Infinity;
  let waiting = '';
  const lastOfAllMs = Date.now() + 60_000;
  while (Date.now() < afterMs) {
    if (Date.now() > lastOfAllMs) throw new Error(`No question came. The screen:\n${driven.text()}`);
    if (waiting === '') waiting = `${words[Math.floor(Math.random() * words.length)] ?? ''} `;
    const erases = typed !== '' && Math.random() < 0.05;
    const key = erases ? '\x7f' : (waiting[0] ?? ' ');
    driven.type(key);
    keys++;
    longestMs = Math.max(longestMs, Date.now() - lastMs);
    lastMs = Date.now();
    typed = erases ? typed.slice(0, -1) : typed + key;
    if (!erases) waiting = waiting.slice(1);
    await sleep(between(20, slowest));
    if (afterMs === Infinity && driven.text().includes(asked)) afterMs = Date.now() + between(300, 3_000);
  }
  if (Date.now() - lastMs > longestGapMs) longestMs = Date.now() - lastMs;
  const isThere = (): boolean => draftOf(driven.text()).trimEnd() === typed.trimEnd();
  const stands = driven.text().includes(asked) && isWhole();
  for (let tries = 0; tries < 25 && !isThere(); tries++) await sleep(20);
  const lost = isThere() ? 0 : Math.max(1, typed.trimEnd().length - draftOf(driven.text()).trimEnd().length);
  if (lost > 0)
    process.stdout.write(
      `lost: typed ${JSON.stringify(typed)}, in the draft ${JSON.stringify(draftOf(driven.text()))}\n`,
    );
  return { keys, answered: !stands, lost, heldUp: longestMs > longestGapMs };
}

async function run(endMs: number, onRound: (round: Round) => void): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), 'agent-typing-'));
  const driven = drive(root);
  const hasEmptyInput = (): boolean => driven.text().endsWith('\n❯');
  try {
    await driven.until(() => driven.text().includes('working'), 'the turn');
    for (let call = 0; call < callsOfRun && Date.now() < endMs; call++) {
      const stands = (): boolean => existsSync(join(root, 'work/docs', `part-${call}`));
      const round = await typeAcross(driven, stands);
      onRound(round);
      if (round.answered) return;
      await driven.until(() => driven.text().includes('Arrows and Enter only'), 'the end of the pause');
      driven.type('\x1b[A\x1b[A\r');
      await driven.until(() => !stands(), 'the answer');
      driven.type('\x15');
      await driven.until(() => hasEmptyInput() || driven.text().includes(asked), 'an empty draft');
    }
  } finally {
    await driven.end();
    rmSync(root, { recursive: true, force: true });
  }
}

const sum = { questions: 0, keys: 0, answered: 0, lost: 0, heldUp: 0 };
const endMs = Date.now() + minutes * 60_000;
while (Date.now() < endMs) {
  await run(endMs, (round) => {
    sum.keys += round.keys;
    if (round.heldUp) {
      sum.heldUp++;
      return;
    }
    sum.questions++;
    sum.answered += round.answered ? 1 : 0;
    sum.lost += round.lost;
  });
}
process.stdout.write(
  `${minutes} min: ${sum.questions} questions, ${sum.keys} keys; answered by typing: ${sum.answered}; keys lost: ${sum.lost}` +
    `${sum.heldUp > 0 ? ` (${sum.heldUp} more questions while this machine was held up and typed with pauses)` : ''}\n`,
);
process.exitCode = sum.answered + sum.lost > 0 || sum.questions === 0 ? 1 : 0;

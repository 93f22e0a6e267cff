import { expect, test } from 'vitest';
import { type AnsweringInput, withAnswers } from '../../../src/ui/terminal/answers.js';
import type { TerminalAnswer } from '../../../src/ui/terminal/streams.js';

interface Asked {
  readonly input: AnsweringInput;
  readonly keys: () => string;
  readonly answers: TerminalAnswer[];
  readonly raw: () => boolean;
  send(chunk: string | Uint8Array): void;
  tick(milliseconds: number): void;
}

/** An input that is listened to, with a clock turned by hand. */
function listening(): Asked {
  let nowMs = 0;
  let timers: { readonly atMs: number; readonly callback: () => void }[] = [];
  let onData: ((chunk: string | Uint8Array) => void) | null = null;
  let raw = true;
  let keys = '';
  const answers: TerminalAnswer[] = [];
  const input = withAnswers(
    {
      on: (_event, listener) => {
        onData = listener;
      },
      off: () => {
        onData = null;
      },
      resume: () => undefined,
      pause: () => undefined,
      setRawMode: (on) => {
        raw = on;
      },
    },
    {
      clock: () => nowMs,
      reflows: true,
      schedule: (callback, delayMs) => {
        const timer = { atMs: nowMs + delayMs, callback };
        timers = [...timers, timer];
        return () => {
          timers = timers.filter((item) => item !== timer);
        };
      },
    },
  );
  input.on('data', (chunk) => {
    keys += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString();
  });
  input.answers.listen((answer) => {
    answers.push(answer);
  });
  return {
    input,
    answers,
    keys: () => keys,
    raw: () => raw,
    send: (chunk) => {
      onData?.(chunk);
    },
    tick: (milliseconds) => {
      nowMs += milliseconds;
      const due = timers.filter(({ atMs }) => atMs <= nowMs);
      timers = timers.filter(({ atMs }) => atMs > nowMs);
      for (const { callback } of due) callback();
    },
  };
}

const answer = '\x1b[24;80R\x1b[7;3R';
const meant: TerminalAnswer = { size: { columns: 80, rows: 24 }, row: 6, column: 2 };

test('an answer is taken out of what is typed, wherever the chunks are cut', () => {
  const text = `ab${answer}cé`;
  for (let cut = 1; cut < text.length; cut++) {
    const { input, answers, keys, send } = listening();
    input.answers.question(false);
    send(text.slice(0, cut));
    send(text.slice(cut));
    expect([keys(), answers]).toEqual(['abcé', [meant]]);
  }
});

test('bytes come through as they were, a character cut in two with an answer owed', () => {
  const { input, answers, keys, send } = listening();
  input.answers.question(false);
  const bytes = Buffer.from(`é${answer}日`);
  const heard: Buffer[] = [];
  input.on('data', (chunk) => {
    heard.push(Buffer.from(chunk));
  });
  send(bytes.subarray(0, 1));
  send(bytes.subarray(1, bytes.length - 1));
  send(bytes.subarray(bytes.length - 1));
  expect([Buffer.concat(heard).toString(), answers, keys()]).toEqual(['é日', [meant], '']);
});

test('an answer that comes after one has gone on without it is not a key, nor is the name of the terminal', () => {
  const { input, keys, answers, send, tick } = listening();
  input.answers.question(false);
  tick(5_000);
  expect(input.answers.patienceMs()).toBe(0);
  send(`x\x1bP>|tmux 3.3a\x1b\\${answer}y`);
  expect([keys(), answers]).toEqual(['xy', [meant]]);
});

test('what looks like an answer is a key where nothing was asked', () => {
  const { keys, answers, send } = listening();
  send('\x1b[1;5R');
  expect([keys(), answers]).toEqual(['\x1b[1;5R', []]);
});

test('a lone escape is given on when nothing follows it', () => {
  const { input, keys, send, tick } = listening();
  input.answers.question(false);
  send('\x1b');
  expect(keys()).toBe('');
  tick(40);
  expect(keys()).toBe('\x1b');
});

test('a terminal that owes its first answer is not asked again', () => {
  const { input } = listening();
  expect(input.answers.question(false)).not.toBeNull();
  expect(input.answers.question(false)).toBeNull();
});

test('raw mode ends when no answer is owed any more, or none is to be expected', () => {
  const owing = listening();
  owing.input.answers.question(false);
  owing.input.setRawMode?.(false);
  expect(owing.raw()).toBe(true);
  owing.send(answer);
  expect(owing.raw()).toBe(false);
  const silent = listening();
  silent.input.answers.question(false);
  silent.input.setRawMode?.(false);
  silent.tick(200);
  expect(silent.raw()).toBe(false);
});

test.each([
  ['\x1bP>|tmux 3.3a\x1b\\\x1b[>84;0;0c', ['all as tmux']],
  ['\x1bP>|XTerm(379)\x1b\\\x1b[>41;379;0c', ['none']],
  ['\x1bP>|kitty(0.26.5)\x1b\\\x1b[>1;4000;26c', ['all']],
  ['\x1b[>65;7006;1c', ['all']],
  ['\x1b[>0;276;0c', ['all', 'all but the cursor', 'none']],
])('a terminal that says it is %j is known, and none of it is a key, wherever the chunks are cut', (said, reflow) => {
  for (let cut = 0; cut < said.length; cut++) {
    const { input, answers, keys, send } = listening();
    input.answers.question(false);
    send(said.slice(0, cut));
    send(said.slice(cut) + answer);
    expect([keys(), answers, input.answers.reflow()]).toEqual(['', [meant], reflow]);
  }
});

test.each([
  ['\x1b]11;rgb:ffff/ffff/ffff\x1b\\', 'light'],
  ['\x1b]11;rgb:1e1e/1f1f/2222\x07', 'dark'],
  ['\x1b]11;rgb:fd/f6/e3\x1b\\', 'light'],
  ['\x1b]11;rgba:0000/2b2b/3636/ffff\x1b\\', 'dark'],
  ['\x1b]11;rgb:f/f/0\x07', 'light'],
])('the background %j is %s, wherever the chunks are cut', (said, wanted) => {
  for (let cut = 0; cut < said.length; cut++) {
    const { input, send } = listening();
    const grounds: string[] = [];
    expect(input.answers.askForGround((ground) => grounds.push(ground))).toBe('\x1b]11;?\x1b\\\x1b[5n');
    send(said.slice(0, cut));
    send(`${said.slice(cut)}\x1b[0n`);
    send(said);
    expect(grounds).toEqual([wanted]);
  }
});

test('a terminal that does not say its background is waited for no longer than its sign of life', () => {
  const { input, raw, send, tick } = listening();
  const grounds: string[] = [];
  input.answers.askForGround((ground) => grounds.push(ground));
  input.setRawMode?.(false);
  expect(raw()).toBe(true);
  send('\x1b[0n');
  expect(raw()).toBe(false);
  send('\x1b]11;rgb:ffff/ffff/ffff\x1b\\');
  tick(5_000);
  expect(grounds).toEqual([]);
});

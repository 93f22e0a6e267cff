import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createKeyDecoder } from '../../../src/ui/terminal/key-decoder.js';
import { type InputEvent, keyName } from '../../../src/ui/terminal/keyboard.js';
import { readKeys } from '../../../src/ui/terminal/read-keys.js';
import { propertyRuns } from '../../property-runs.js';

function shown(events: readonly InputEvent[]): string[] {
  return events.map((event) => (event.type === 'key' ? keyName(event) : `${event.type}:${event.text}`));
}

function decodeAll(...chunks: (string | Uint8Array)[]): string[] {
  const decoder = createKeyDecoder();
  return shown([...chunks.flatMap((chunk) => [...decoder.decode(chunk)]), ...decoder.flush()]);
}

test.each([
  ['plain text', 'hällo 日本', ['text:hällo 日本']],
  [
    'controls',
    '\x01\x05\x0b\r\n\t\x7f\x08',
    ['ctrl-a', 'ctrl-e', 'ctrl-k', 'enter', 'ctrl-j', 'tab', 'backspace', 'ctrl-h'],
  ],
  ['three quick backspaces', '\x7f\x7f\x7f', ['backspace', 'backspace', 'backspace']],
  ['arrows, both modes', '\x1b[A\x1bOB\x1b[1;5C\x1b[1;3D', ['up', 'down', 'ctrl-right', 'alt-left']],
  ['editing keys', '\x1b[3~\x1b[H\x1b[4~\x1b[5~\x1b[Z', ['delete', 'home', 'end', 'pageup', 'shift-tab']],
  ['alt keys', '\x1bb\x1bf\x1b\x7f\x1b\r', ['alt-b', 'alt-f', 'alt-backspace', 'alt-enter']],
  [
    'kitty',
    '\x1b[13;2u\x1b[97;5u\x1b[27u\x1b[13;3u\x1b[127;3u\x1b[228u',
    ['shift-enter', 'ctrl-a', 'escape', 'alt-enter', 'alt-backspace', 'text:ä'],
  ],
  ['kitty key release is nothing', '\x1b[97;1:3u', []],
  ['modifyOtherKeys', '\x1b[27;2;13~', ['shift-enter']],
  [
    'answers of the terminal are nothing',
    '\x1b[?62;4c\x1b]11;rgb:0000/0000/0000\x07\x1bP>|xterm\x1b\\x\x1b[I',
    ['text:x'],
  ],
  ['escape alone', '\x1b', ['escape']],
  [
    'alt and an arrow, as old terminals send it',
    '\x1b\x1b[A\x1b\x1bOB\x1b\x1b[3~',
    ['alt-up', 'alt-down', 'alt-delete'],
  ],
  ['escape, before the answer to a question', '\x1b\x1b[0n', ['escape']],
  ['escape twice, before the answer to a question', '\x1b\x1b\x1b[0n', ['escape', 'escape']],
  ['escape, before its own release', '\x1b\x1b[27;1:3u', ['escape']],
  ['escape, before a paste', '\x1b\x1b[200~a\x1b[201~', ['escape', 'paste:a']],
  ['escape, before Ctrl-C', '\x1b\x03', ['escape', 'ctrl-c']],
  [
    'Ctrl and Alt on layouts without Latin letters',
    '\x1b[1089;5u\x1b[1089::99;5u\x1b[1092:1060:97;6u\x1bс\x1b[968;5u\x1b[1103;3u\x1b[1502;5u\x1b[12618;5u',
    ['ctrl-c', 'ctrl-c', 'ctrl-shift-a', 'alt-c', 'ctrl-c', 'alt-z', 'ctrl-n', 'ctrl-c'],
  ],
  ['text on such a layout', '\x1b[1092u\x1b[1092:1060;2uф', ['text:ф', 'text:Ф', 'text:ф']],
  ['a combination of the window manager', '\x1b[99;9u', []],
  [
    'keys of rxvt',
    '\x1b[7^\x1b[3$\x1b[8@\x1b[a\x1bOd',
    ['ctrl-home', 'shift-delete', 'ctrl-shift-end', 'shift-up', 'ctrl-left'],
  ],
  ['keys of the Linux console', '\x1b[[A\x1b[[E', ['f1', 'f5']],
  ['a keypad in application mode', '\x1bOp\x1bOy\x1bOM\x1bOk', ['text:0', 'text:9', 'enter', 'text:+']],
  [
    'win32-input-mode',
    '\x1b[65;30;97;1;0;1_\x1b[65;30;97;0;0;1_\x1b[13;28;13;1;0;1_\x1b[67;46;3;1;8;1_\x1b[37;75;0;1;256;2_\x1b[81;16;64;1;9;1_',
    ['text:a', 'enter', 'ctrl-c', 'left', 'left', 'text:@'],
  ],
  ['a character that Windows sends in two halves', '\x1b[0;0;55357;1;0;1_\x1b[0;0;56832;1;0;1_', ['text:😀']],
  [
    'mouse reports of all modes are nothing',
    '\x1b[M !!\x1b[M#\u0220!\x1b[<0;35;7M\x1b[<0;35;7m\x1b[32;35;7Mx',
    ['text:x'],
  ],
  [
    'answers about modes and colours',
    '\x1b[?2026;2$y\x1b[?1;0;256S\x1b]4;1;rgb:1/2/3\x1b\\\x1b_Gi=1;OK\x1b\\\x1bP1+r544e=78\x1b\\x',
    ['text:x'],
  ],
  ['Alt with a bracket and text behind it', '\x1b]hello', ['alt-]', 'text:hello']],
  ['the beginning of a sequence that was lost, and text', '\x1b[hello', ['alt-[', 'text:hello']],
])('%s', (_name, bytes, expected) => {
  expect(decodeAll(bytes)).toEqual(expected);
});

test('the bytes may be split anywhere', () => {
  const bytes = new TextEncoder().encode('aä日😀\x1b[1;5C\x1b[200~p\nq\x1b[201~\x1bOB\x1b[13;2uz');
  const whole = ['text:aä日😀', 'ctrl-right', 'paste:p\nq', 'down', 'shift-enter', 'text:z'];
  const joined = (events: string[]): string[] =>
    events.reduce<string[]>((out, event) => {
      const last = out.at(-1);
      if (last?.startsWith('text:') && event.startsWith('text:')) out[out.length - 1] = last + event.slice(5);
      else out.push(event);
      return out;
    }, []);
  for (let cut = 1; cut < bytes.length; cut++)
    expect(joined(decodeAll(bytes.slice(0, cut), bytes.slice(cut)))).toEqual(whole);
  expect(joined(decodeAll(...Array.from(bytes, (byte) => Uint8Array.of(byte))))).toEqual(whole);
});

test('ten thousand pasted lines are one event, also when the end marker is split', () => {
  const text = Array.from({ length: 10_000 }, (_, i) => `line ${i}`).join('\n');
  const stream = `\x1b[200~${text}\x1b[201~\r`;
  for (const cut of [stream.length - 2, stream.length - 4, stream.length - 6, 3, 40_000]) {
    expect(decodeAll(stream.slice(0, cut), stream.slice(cut))).toEqual([`paste:${text}`, 'enter']);
  }
});

test('an end marker inside a paste does not end it, and leaves no escape', () => {
  expect(decodeAll('\x1b[200~hello\x1b[201~\nrm -rf ~\n\x1b[201~')).toEqual(['paste:hello\nrm -rf ~\n']);
});

test('whatever arrives, nothing throws and no event holds an escape', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 6 }), (chunks) => {
      const decoder = createKeyDecoder();
      for (const event of chunks.flatMap((chunk) => [...decoder.decode(chunk)]))
        if (event.type === 'text') expect(event.text).not.toContain('\x1b');
    }),
  );
});

/** A line to a terminal, with a clock turned by hand. */
function line(): {
  readonly seen: () => readonly string[];
  readonly asked: () => number;
  send(bytes: string | Uint8Array): void;
  wait(milliseconds: number): void;
} {
  let nowMs = 0;
  let asked = 0;
  let timers: { readonly atMs: number; readonly run: () => void }[] = [];
  let deliver: (chunk: Uint8Array | string) => void = () => undefined;
  const events: InputEvent[] = [];
  readKeys(
    {
      on: (_event, listener) => {
        deliver = listener;
      },
      off: () => undefined,
      resume: () => undefined,
      pause: () => undefined,
    },
    (run, delayMs) => {
      const timer = { atMs: nowMs + delayMs, run };
      timers.push(timer);
      return () => {
        timers = timers.filter((other) => other !== timer);
      };
    },
    {
      onKeys: (more) => {
        events.push(...more);
      },
      ask: () => {
        asked++;
      },
    },
  );
  return {
    seen: () => shown(events),
    asked: () => asked,
    send: (bytes) => {
      deliver(bytes);
    },
    wait: (milliseconds) => {
      const endMs = nowMs + milliseconds;
      for (;;) {
        const [next] = timers.filter(({ atMs }) => atMs <= endMs).sort((a, b) => a.atMs - b.atMs);
        if (!next) break;
        timers = timers.filter((timer) => timer !== next);
        nowMs = next.atMs;
        next.run();
      }
      nowMs = endMs;
    },
  };
}

/** What a terminal sends at once, and the text of it. */
type Sent = readonly [bytes: string, text: string];

const typedTexts: readonly Sent[] = ['abc', 'ä', '日本', '😀', ' [A ', '0~', 'O', 'M !!', '1;5C', 'ы'].map(
  (text) => [text, text] as const,
);
const pastes: readonly Sent[] = ['one\rtwo\r', 'x', '\r', '[201~', 'ö\rrm -rf /\r'].map(
  (text) => [`\x1b[200~${text}\x1b[201~`, text.replaceAll('\r', '\n')] as const,
);
const silent: readonly Sent[] = [
  ...['\x1b[A', '\x1bOB', '\x1b[1;5C', '\x1b[3~', '\x1b[15;2~', '\x1b[Z', '\x1bb', '\x1bж', '\x1b\x7f', '\x1b\x1b[A'],
  ...['\x1b[97;5u', '\x1b[1089::99;5u', '\x1b[13;1:3u', '\x1b[27;1:3u', '\x1b[57441;2u'],
  ...['\x1b[M !!', '\x1b[M#\u0220!', '\x1b[<0;35;7M', '\x1b[<35;150;7m', '\x1b[32;35;7M', '\x1b[M\x7f~~'],
  ...[
    '\x1b[I',
    '\x1b[O',
    '\x1b[24;80R',
    '\x1b[0n',
    '\x1b[?62;22c',
    '\x1b[>41;354;0c',
    '\x1b[?2026;2$y',
    '\x1b[8;24;80t',
  ],
  ...['\x1b]11;rgb:0000/0000/0000\x07', '\x1b]52;c;YQ0K\x1b\\', '\x1bP>|xterm(388)\x1b\\', '\x1b_Gi=1;OK\x1b\\'],
  ...['\x1b[13;28;13;0;0;1_', '\x1b[27;1;27;0;0;1_', '\x1b[16;42;0;1;16;1_', '\x1b[[C', '\x1b[7^', '\x1b[a'],
].map((bytes) => [bytes, ''] as const);

const someSent = fc.constantFrom(...typedTexts, ...pastes, ...silent);
const cuts = fc.array(fc.tuple(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 0, max: 500 })), { maxLength: 9 });

test.each([false, true])(
  'whatever a slow line cuts, nobody pressed Enter or Escape, and no text is lost (the terminal answers: %s)',
  (answers) => {
    fc.assert(
      fc.property(fc.array(fc.tuple(someSent, cuts), { maxLength: 12 }), (sent) => {
        const to = line();
        let owed = 0;
        for (const [[text], pieces] of sent) {
          let bytes = Buffer.from(text);
          for (const [size, delayMs] of [...pieces, [Infinity, 0] as const]) {
            if (bytes.length === 0) break;
            to.send(bytes.subarray(0, size));
            bytes = bytes.subarray(size);
            if (bytes.length > 0) to.wait(delayMs);
          }
          // The answer comes behind what was on the way.
          if (answers) for (; owed < to.asked(); owed++) to.send('\x1b[0n');
          // A person, or another program, is not that fast.
          to.wait(600);
        }
        to.wait(5000);
        const seen = to.seen();
        expect(seen.filter((event) => /^(?:.*-)?(?:enter|escape)$/.test(event))).toEqual([]);
        expect(seen.flatMap((event) => /^(?:text|paste):(.*)$/s.exec(event)?.[1] ?? []).join('')).toBe(
          sent.map(([[, text]]) => text).join(''),
        );
      }),
      { numRuns: propertyRuns(2_000) },
    );
  },
);

test('a terminal that answers does not have Escape wait', () => {
  const to = line();
  to.send('\x1b');
  to.wait(40);
  expect([to.asked(), to.seen()]).toEqual([1, []]);
  to.send('\x1b[0n');
  expect(to.seen()).toEqual(['escape']);
});

test('a terminal that never answers has it wait for the rest of a sequence', () => {
  const to = line();
  to.send('\x1b');
  to.wait(500);
  to.send('[A');
  to.send('\x1b');
  to.wait(600);
  expect(to.seen()).toEqual(['up', 'escape']);
});

test.each<[name: string, then: readonly (readonly [bytes: string, waitMs: number])[], seen: readonly string[]]>([
  ['a quiet second', [['', 1100]], ['paste:half\nline']],
  [
    'Ctrl-C at once',
    [
      ['\x03', 10],
      ['a', 10],
    ],
    ['paste:half\nline', 'text:a'],
  ],
  [
    'Ctrl-C of another layout',
    [
      ['\x1b[1089;5u', 10],
      ['a', 10],
    ],
    ['paste:half\nline', 'text:a'],
  ],
  [
    'a quiet second, then keys',
    [
      ['', 1100],
      ['x', 200],
      ['\x7f', 200],
      ['\r', 10],
    ],
    ['paste:half\nline', 'text:x', 'backspace', 'enter'],
  ],
  [
    'a quiet second, then Ctrl-C',
    [
      ['', 1100],
      ['\x03', 10],
    ],
    ['paste:half\nline', 'ctrl-c'],
  ],
  [
    'a quiet second, then Escape',
    [
      ['', 1100],
      ['\x1b', 600],
    ],
    ['paste:half\nline', 'escape'],
  ],
  [
    'a quiet second, then a message',
    [
      ['', 1100],
      ['h', 90],
      ['ö', 90],
      ['\r', 600],
    ],
    ['paste:half\nline', 'text:h', 'text:ö', 'enter'],
  ],
  [
    'a late rest',
    [
      ['', 1100],
      ['rm -rf\r', 200],
      ['more\r', 200],
      ['\x1b[201~', 200],
      ['\r', 10],
    ],
    ['paste:half\nline', 'paste:rm -rf\n', 'paste:more\n', 'enter'],
  ],
  [
    'a late rest in single bytes',
    [
      ['', 1100],
      ['a', 300],
      ['\r', 300],
      ['b', 300],
      ['\x1b[201~', 200],
    ],
    ['paste:half\nline', 'text:a', 'paste:\nb'],
  ],
  [
    'half of an end mark, and the rest of it later',
    [
      ['\x1b[20', 1100],
      ['1~', 100],
      ['\r', 10],
    ],
    ['paste:half\nline', 'enter'],
  ],
  [
    'a second paste',
    [
      ['', 1100],
      ['\x1b[200~new\x1b[201~', 100],
    ],
    ['paste:half\nline', 'paste:new'],
  ],
])('a paste whose end mark is lost is ended by %s', (_name, then, expected) => {
  const to = line();
  to.send('\x1b[200~half\rline');
  for (const [bytes, waitMs] of then) {
    if (bytes !== '') to.send(bytes);
    to.wait(waitMs);
  }
  expect(to.seen()).toEqual(expected);
});

test('lines in one read are a paste, typed lines are not', () => {
  const burst = line();
  burst.send('a\rb\rc');
  burst.send('d\r');
  burst.wait(200);
  burst.send('\r');
  expect(burst.seen()).toEqual(['paste:a\nb\ncd\n', 'enter']);
  const typed = line();
  typed.send('go\r');
  typed.send('\r');
  typed.send('x');
  expect(typed.seen()).toEqual(['text:go', 'enter', 'enter', 'text:x']);
});

test('an answer of a terminal that has no end does not keep the keyboard', () => {
  const to = line();
  to.send(`\x1b]52;c;${'YQ0K'.repeat(3000)}`);
  to.wait(300);
  to.send('\x03');
  to.send('a');
  to.send(`\x1bP>|${'x'.repeat(5000)}`);
  to.wait(1100);
  to.send('b');
  expect(to.seen()).toEqual(['text:a', 'text:b']);
});

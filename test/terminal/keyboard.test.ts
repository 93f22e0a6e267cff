import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createKeyDecoder, type InputEvent, keyName } from '../../src/terminal/keyboard.js';

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
  ['escape twice, then an arrow', '\x1b\x1b[A', ['escape', 'up']],
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

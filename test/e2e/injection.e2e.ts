import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { agent, place, script, type Place } from './program.js';
import { openScreen, type Screen } from './terminal.js';

interface Case {
  readonly id: string;
  readonly context: string;
  readonly payload?: string | readonly string[];
  readonly must_not_reach: readonly string[];
  readonly must_show?: readonly string[];
  readonly must_survive?: readonly string[];
}

const file = new URL('../../fixtures/security/ansi-injection.json', import.meta.url);
const cases: readonly Case[] = (JSON.parse(readFileSync(file, 'utf8')) as { readonly cases: readonly Case[] }).cases;
const of = (...contexts: readonly string[]): readonly Case[] =>
  cases.filter((item) => contexts.includes(item.context) && item.payload !== undefined);
const whole = (item: Case): string => (typeof item.payload === 'string' ? item.payload : (item.payload ?? []).join(''));

/** All that the program itself writes between its start and its end: rows up and down, columns, erasing to the right,
 * frames, and the questions who the terminal is and where it stands. Attributes only where colours are on. */
const own =
  /\x1b\[\?25l(?=\r|\x1b7|\x1b\[\d*A)|\x1b\[\?2026h\x1b\[\?25l|\x1b\[\?25h\x1b\[\?2026l|\x1b\[\d*[ABC]|\x1b\[\d+G|\x1b\[[JK]|\x1b7\x1b\[9999;9999H\x1b\[6n\x1b8\x1b\[6n|\x1b\[>q\x1b\[>c/g;
/** Carriage return, backspace and line feed are how the program moves; whether a payload's did is seen on the
 * screen. */
const movesOfOurs = new Set(['\\r', '\\u0008', '\\n']);

/** What of the patterns of `item`, and of any control character, is in the bytes that are not the program's own. */
function reached(item: Case, bytes: string): readonly string[] {
  const rest = bytes.replace(own, '');
  const controls = [...new Set(rest.match(/(?![\r\n\b])[\0-\x1f\x7f-\x9f]/g) ?? [])].map(
    (found) => `U+${(found.codePointAt(0) ?? 0).toString(16)}`,
  );
  return [
    ...controls,
    ...item.must_not_reach.filter((pattern) => !movesOfOurs.has(pattern) && new RegExp(pattern).test(rest)),
  ].map((found) => `${item.id}: ${found}`);
}

/** What `item` was to leave on the screen and did not. Rows are joined: the terminal wraps where it likes. */
function missing(item: Case, screen: string): readonly string[] {
  const text = screen.replace(/\s+/g, '');
  return [...(item.must_show ?? []), ...(item.must_survive ?? [])]
    .filter((part) => !text.includes(part.replace(/\s+/g, '')))
    .map((part) => `${item.id} lost ${JSON.stringify(part)}`);
}

interface Seen {
  readonly bytes: string;
  readonly text: string;
}

/** Sends `line`, waits for `until`, and gives what was written since. */
async function during(screen: Screen, line: string, until: RegExp): Promise<Seen> {
  const [bytes, text] = [screen.raw().length, screen.text().length];
  screen.type(line);
  await screen.until(until);
  return { bytes: screen.raw().slice(bytes), text: screen.text().slice(Math.max(0, text - 400)) };
}

function report(what: string, count: number, failures: readonly string[]): void {
  console.info(`${what}: ${count} payloads through a pseudo-terminal, ${failures.length} failures`);
  expect(failures).toEqual([]);
}

const colourless = { columns: 120, rows: 40, env: { NO_COLOR: '1', AGENT_UI_NOTIFY: 'off', AGENT_UI_TITLE: 'false' } };

/** One user turn per case: calls or text that hold the payload, then a sign that it is over. */
function played(at: Place, turns: readonly (readonly [call: object | null, text: string])[]): string {
  return script(
    at,
    turns.flatMap(([call, text], index) => [
      { text, ...(call ? { calls: [call] } : {}) },
      ...(call ? [{ text: `over-${index}` }] : []),
    ]),
  );
}

test('nothing in the output of a tool reaches the terminal', async () => {
  const list = of('tool_output', 'tool_output_chunks');
  const at = place();
  const commands = list.map((item, index) => {
    const chunks = typeof item.payload === 'string' ? [item.payload] : (item.payload ?? []);
    chunks.forEach((chunk, part) => {
      at.file(`case-${index}-${part}`, chunk);
    });
    return chunks.map((_, part) => `cat case-${index}-${part}`).join('; sleep 0.3; ');
  });
  const model = played(
    at,
    commands.map((command) => [{ name: 'bash', arguments: { command } }, '']),
  );
  const screen = openScreen(at, ['-m', model, '--approval', 'never'], colourless);
  await screen.until(/❯/);
  const failures: string[] = [];
  for (const [index, item] of list.entries()) {
    const { bytes, text } = await during(screen, `turn-${index}\r`, new RegExp(`over-${index}\\n[\\s\\S]*❯`));
    failures.push(...reached(item, bytes), ...missing(item, text));
  }
  report('tool output', list.length, failures);
}, 180_000);

test('nothing in the text of a model reaches the terminal', async () => {
  const list = of('model_text');
  const at = place();
  const screen = openScreen(
    at,
    [
      '-m',
      script(
        at,
        list.map((item, index) => ({ text: `${whole(item)}\n\nover-${index}` })),
      ),
    ],
    colourless,
  );
  await screen.until(/❯/);
  const failures: string[] = [];
  for (const [index, item] of list.entries()) {
    const { bytes, text } = await during(screen, `turn-${index}\r`, new RegExp(`over-${index}\\n[\\s\\S]*❯`));
    failures.push(...reached(item, bytes), ...missing(item, text));
  }
  report('model text', list.length, failures);
}, 60_000);

/** The call whose question shows the payload. With --test no such call could run, and each is answered with no. */
function asked(item: Case): object {
  if (item.context === 'approval_path') return { name: 'file_write', arguments: { path: whole(item), content: 'x' } };
  return {
    name: 'bash',
    arguments: { command: item.context === 'approval_url' ? `curl ${whole(item)}` : whole(item) },
  };
}

test('a question shows what it asks about, and nothing in it reaches the terminal', async () => {
  const list = of('approval_command', 'approval_path', 'approval_url');
  const at = place();
  const screen = openScreen(
    at,
    [
      '-m',
      played(
        at,
        list.map((item) => [asked(item), '']),
      ),
      '--test',
      '--approval',
      'always',
    ],
    colourless,
  );
  await screen.until(/❯/);
  const failures: string[] = [];
  for (const [index, item] of list.entries()) {
    const question = await during(screen, `turn-${index}\r`, /waiting for you[^\n]*\n\S+ [^\n]*\?[\s\S]*say why/);
    const shown = screen.text().slice(screen.text().lastIndexOf('waiting for you'));
    failures.push(...missing(item, shown));
    await screen.until(/Arrows and Enter only|Enter select/);
    screen.type('\x1b');
    await screen.until(new RegExp(`over-${index}\\n`));
    await screen.until(/❯ *$/);
    failures.push(...reached(item, question.bytes));
  }
  expect(screen.text()).not.toContain('test mode');
  report('questions', list.length, failures);
}, 240_000);

test('nothing in a file name or a pasted text reaches the terminal; a written file keeps its bytes', async () => {
  const failures: string[] = [];
  const [names, pastes, files] = [of('filename'), of('pasted_input'), of('file_write_content')];
  for (const item of names) {
    const at = place({ [whole(item)]: 'x' });
    const screen = openScreen(
      at,
      ['-m', played(at, [[{ name: 'glob', arguments: { pattern: '**/*' } }, '']])],
      colourless,
    );
    await screen.until(/❯/);
    const { bytes, text } = await during(screen, 'go\r', /over-0\n[\s\S]*❯/);
    failures.push(...reached(item, bytes), ...missing(item, text));
  }
  for (const item of pastes) {
    const at = place();
    const screen = openScreen(at, ['-m', script(at, [{ text: 'heard' }], { loop: true }), '--no-tools'], colourless);
    await screen.until(/❯/);
    const { bytes, text } = await during(screen, `\x1b[200~${whole(item)}\x1b[201~\r`, /heard\n[\s\S]*❯/);
    failures.push(...reached(item, bytes), ...missing(item, text));
  }
  for (const item of files) {
    const at = place();
    const screen = openScreen(
      at,
      [
        '-m',
        played(at, [[{ name: 'file_write', arguments: { path: 'written', content: whole(item) } }, '']]),
        '--approval',
        'never',
      ],
      colourless,
    );
    await screen.until(/❯/);
    const { bytes } = await during(screen, 'go\r', /over-0\n[\s\S]*❯/);
    if (readFileSync(`${at.work}/written`, 'utf8') !== whole(item))
      failures.push(`${item.id}: the file is not what was written`);
    failures.push(...reached({ ...item, must_not_reach: [] }, bytes));
  }
  report('file names, pastes, files', names.length + pastes.length + files.length, failures);
}, 60_000);

test('without the REPL too, an answer on a terminal does not steer it; into a pipe it goes as it is', async () => {
  const answer = '\u001b]0;pwned\u0007\u001b[2Jhello \u009b31mred';
  const at = place();
  const model = script(at, [{ text: answer }]);
  const screen = openScreen(at, ['-p', '-m', model, 'go']);
  expect(await screen.exited).toBe(0);
  expect(screen.text()).toContain('hello');
  // oxlint-disable-next-line no-control-regex -- what must not be there
  expect(screen.raw()).not.toMatch(/\u001b\]0;pwned|\u001b\[2J|\u009b/);
  expect((await agent(at, ['-p', '-m', model, 'go'])).stdout).toBe(`${answer}\n`);
});

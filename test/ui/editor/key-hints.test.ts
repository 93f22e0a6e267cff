import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';
import { parseSync } from 'oxc-parser';
import { expect, test } from 'vitest';
import { type Harness, openRepl, shown } from '../repl-harness.js';

const src = fileURLToPath(new URL('../../../src', import.meta.url));

/** The name of a key and nothing else: what is asked for, not what is said. */
const wholeKey = /^(?:(?:ctrl|alt|shift)-)*(?:\S|[a-z]+)$/i;
const namesKey = /(?<![-\w])(?:ctrl|alt|shift)-\w|\besc\b/i;

/** The texts of a program that name a key among other words. */
function fixedKeys(file: string, source: string): string[] {
  const found: string[] = [];
  const visit = (node: unknown): void => {
    if (typeof node !== 'object' || node === null) return;
    const { type, value } = node as { readonly type?: string; readonly value?: unknown };
    const text = type === 'TemplateElement' ? (value as { readonly cooked: string }).cooked : value;
    const isText = type === 'Literal' || type === 'TemplateElement' || type === 'JSXText';
    if (isText && typeof text === 'string' && !wholeKey.test(text) && namesKey.test(text)) found.push(text);
    for (const child of Object.values(node).flat()) visit(child);
  };
  visit(parseSync(file, source).program);
  return found;
}

test('no hint names a key by a fixed text: a person may have given that to another one', () => {
  const named = readdirSync(src, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .flatMap((name) => fixedKeys(name, readFileSync(join(src, name), 'utf8')).map((text) => `${name}: ${text}`));
  // What the terminal makes of Ctrl-C outside of the REPL, keys of a browser, and the table itself.
  const allowed =
    /^(?:ui\/editor\/keybindings|features\/scheduled-tasks\/fire-tasks|frontends\/viewers\/(?:serve-page|session-page|watch-session))\.ts:/;
  expect(named.filter((text) => !allowed.test(text))).toEqual([]);
  const planted =
    "say('Ctrl-X goes back'); say(`press ${esc}`); <K text=\"esc leaves\" />; is('ctrl-x'); is('escape');";
  expect(fixedKeys('a.tsx', planted)).toEqual(['Ctrl-X goes back', 'esc leaves']);
});

const own = { interrupt: 'f4', cancel: 'ctrl-q', show_last: 'f2', switch_detail: 'f3', cut_line_left: 'alt-u' };
const f3 = '\x1bOR';

async function printResult(harness: Harness): Promise<void> {
  const output = JSON.stringify({ output: Array.from({ length: 300 }, (_row, n) => `row ${n}`).join('\n') });
  const data = { tool_call_id: 'c1', name: 'grep', output, success: true, duration_ms: 1 };
  harness.session.append({ kind: 'tool_result', content: 'found', data });
  harness.tick(40);
  await harness.settle();
}

test.each([
  [own, 'F2 or /show 2', 'F3 for short', 'F4 stops', 'Ctrl-Q again to exit'],
  [{}, 'Ctrl-O or /show 2', 'Ctrl-X for short', 'Esc stops', 'Ctrl-C again to exit'],
])('what is said of keys names those that are bound: %j', async (bindings, page, back, stop, leave) => {
  const harness = openRepl({ bindings, columns: 120, rows: 50 });
  harness.type('go\r');
  harness.tick(1_100);
  await harness.settle();
  expect(shown(harness.terminal).join('\n')).toContain(`working 1s, ${stop}`);
  await printResult(harness);
  expect(shown(harness.terminal).join('\n')).toContain(page);
  void harness.session.end('completed');
  await harness.settle();
  harness.type(bindings === own ? f3 : '\x18');
  await harness.settle();
  await harness.settle();
  expect(shown(harness.terminal).join('\n')).toContain(back);
  harness.type(bindings === own ? '\x11' : '\x03');
  await harness.settle();
  expect(shown(harness.terminal).join('\n')).toContain(leave);
});

test('what has no key any more is not said to have one', async () => {
  const bindings = { interrupt: '', cancel: '', show_last: '', switch_detail: '' };
  const harness = openRepl({ bindings, columns: 120, rows: 50 });
  harness.type('go\r');
  harness.tick(1_100);
  await harness.settle();
  await printResult(harness);
  const text = shown(harness.terminal).join('\n');
  expect(text).toContain('280 rows, /show 2');
  expect(text).toMatch(/working 1s ·/);
  expect(text).not.toMatch(/interrupts|Ctrl/);
});

test('a draft that comes back says how it is cleared', async () => {
  const history = { load: async () => [], append: async () => undefined };
  for (const [text, key] of [
    ['one line', 'Alt-U'],
    ['two\nlines', 'Ctrl-Q'],
  ]) {
    const loadDraft = async () => ({ text: text ?? '', savedAt: new Date(0) });
    const harness = openRepl({ bindings: own, history: { ...history, loadDraft } });
    await harness.settle();
    expect(shown(harness.terminal).join('\n')).toContain(`; ${key} clears it.`);
  }
});

test("with vim's keys a key of one's own interrupts in every mode, and the status line names it", async () => {
  const harness = openRepl({ bindings: own, keys: 'vim' });
  await harness.settle();
  for (const [mode, keys] of [
    ['INSERT', ''],
    ['NORMAL', '\x1b'],
  ]) {
    harness.type(`${mode === 'NORMAL' ? 'i' : ''}go\r`);
    await harness.settle();
    harness.type(keys ?? '');
    harness.tick(1_100);
    await harness.settle();
    expect(shown(harness.terminal).join('\n')).toMatch(new RegExp(`${mode ?? ''} · working \\ds, F4 stops`));
    const before = harness.session.interrupts();
    harness.type('\x1bOS');
    await harness.settle();
    expect(harness.session.interrupts()).toBe(before + 1);
  }
});

import { expect, test } from 'vitest';
import type { Rule } from '../../../src/kernel/core/policy.js';
import type { Risk } from '../../../src/kernel/core/tool.js';
import { textWidth, withoutSgr } from '../../../src/ui/terminal/rows.js';
import { createApproval } from '../../../src/ui/components/approval.js';
import { mountScreen } from '../../../src/ui/components/mounted-screen.js';
import { arrange } from '../../../src/ui/components/screen.js';
import { emptyEditor } from '../../../src/ui/editor/editor.js';
import { createTheme } from '../../../src/kernel/console/theme.js';
import { question } from '../fake-session.js';

const theme = createTheme({ unicode: true, colors: 0, theme: 'none' });
const sizes = [20, 40, 80, 200].flatMap((columns) => [5, 8, 9, 10, 12, 15, 20, 60].map((rows) => ({ columns, rows })));

const long = 'abcdefghij'.repeat(12);
const rule = (word: string): Rule => ({ tool: 'bash', argv: ['git', word] });
const samples: readonly (readonly [name: string, command: string, rules: readonly Rule[], risk: Risk])[] = [
  [
    'four commands',
    'git add a && git commit b && git fetch c && git tag d',
    ['add', 'commit', 'fetch', 'tag'].map(rule),
    'mutating',
  ],
  ['long words', `echo ${long}`, [rule('zyxwvutsrq'.repeat(12))], 'mutating'],
  ['many lines', Array.from({ length: 30 }, (_item, index) => `line-${index}`).join('\n'), [], 'dangerous'],
];

/** Returns what of a text is in no drawn row, where its rows follow each other. */
function missing(text: string, drawn: readonly string[]): string {
  let rest = text;
  for (;;) {
    const fitting = drawn.filter((row) => row !== '' && rest.startsWith(row));
    const next = fitting.toSorted((one, other) => other.length - one.length)[0];
    if (next === undefined) return rest;
    rest = rest.slice(next.length).trimStart();
  }
}

test.each(samples)('no yes before all of it was drawn, in windows of every size: %s', (_name, command, rules, risk) => {
  const screen = mountScreen();
  for (const size of sizes) {
    const where = `${size.columns}x${size.rows}`;
    const answers: unknown[] = [];
    const asked = question('c1', 'bash', { command }, ['a reason that is told', long], [`/work/${long}`]);
    const verdict = { ...asked.verdict, risk, rules };
    const overlay = createApproval(
      { ...asked, verdict },
      theme,
      (answer) => answers.push(answer),
      () => undefined,
    );
    const drawn: string[] = [];
    let lines: readonly string[] = [];
    const draw = (): void => {
      const state = {
        running: null,
        queue: [],
        apart: true,
        todo: '',
        status: 'waiting for you',
        menu: null,
        waits: false,
        prompt: { editor: emptyEditor, searching: null },
        theme,
        size,
        overlay,
      };
      ({ lines } = screen.layOut(arrange(state)));
      lines = lines.map(withoutSgr);
      drawn.push(...lines.map((line) => line.trim()));
      expect(lines.length, where).toBeLessThanOrEqual(Math.max(1, size.rows - 2));
      expect(Math.max(...lines.map(textWidth)), where).toBeLessThan(size.columns);
    };
    draw();
    for (let tries = 0; tries < 400 && answers.length === 0; tries++) {
      if (risk === 'dangerous')
        for (let up = 0; up < 6; up++)
          overlay.take({ type: 'key', name: 'up', ctrl: false, alt: false, shift: false } as never);
      overlay.take(
        risk === 'dangerous'
          ? ({ type: 'key', name: 'enter', ctrl: false, alt: false, shift: false } as never)
          : { type: 'text', text: 'y' },
      );
      if (answers.length > 0) break;
      draw();
      if (lines.some((line) => line.includes('Make the window'.slice(0, size.columns - 1)))) break;
    }
    if (answers.length === 0) {
      expect([where, size.rows < 10], where).toEqual([where, true]);
      continue;
    }
    expect(answers, where).toEqual([{ answer: 'once' }]);
    expect(
      lines.some((line) => line.startsWith('Run this command?'.slice(0, size.columns - 2))),
      where,
    ).toBe(true);
    const all = drawn.join('').replace(/\s/g, '');
    for (const part of command.split('\n')) expect(all, where).toContain(part.replace(/\s/g, '').slice(0, 10));
    if (risk === 'dangerous' || rules.length === 0) continue;
    const about = rules.map(({ argv = [] }) => `\`${argv.join(' ')} …\``).join(' and ');
    const said = `Yes, and don't ask again for ${about} (this session)`;
    const unsaid = [`s  ${said}`, `[s]ession → ${said}`].map((text) => missing(text, drawn));
    expect(unsaid, where).toContain('');
  }
  screen.unmount();
});

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { place, script } from './program.js';
import { openScreen, type Screen } from './terminal.js';

const asking = [
  { text: 'I clean up.', delay_ms: 1_000, calls: [{ name: 'bash', arguments: { command: 'rm -rf docs' } }] },
  { text: 'That is all.' },
];

/** Types as a person does, a key at a time. */
async function typeSlowly(screen: Screen, text: string, delayMs: number): Promise<void> {
  for (const key of text) {
    screen.type(key);
    await new Promise((resolve) => {
      setTimeout(resolve, delayMs);
    });
  }
}

test.each(['why yesterday you yes', 'please try today to fix'])(
  'who goes on typing %j while a question comes answers nothing, and all of it is in the draft',
  async (sentence) => {
    const at = place({ 'docs/a.md': 'x' });
    const screen = openScreen(at, ['-m', script(at, asking), 'go']);
    await screen.until(/Esc stops/);
    let typed = '';
    const asked = screen.until(/Run this command\?/).then(() => true);
    while (!(await Promise.race([asked, Promise.resolve(false)]))) {
      await typeSlowly(screen, `${sentence} `, 120);
      typed += `${sentence} `;
    }
    await typeSlowly(screen, sentence, 120);
    typed += sentence;
    await screen.until(new RegExp(`${sentence.replaceAll(' ', '\\s+')}$`));
    expect(
      screen
        .text()
        .slice(screen.text().lastIndexOf('say why'))
        .replace(/^[^❯]*❯ /, '')
        .replace(/\s+/g, ' ')
        .trim(),
    ).toBe(typed);
    expect(existsSync(join(at.work, 'docs/a.md'))).toBe(true);
    await screen.until(/Arrows and Enter only/);
    screen.type('\x1b[A\x1b[A\r');
    await screen.until(/That is all\./);
    expect(existsSync(join(at.work, 'docs'))).toBe(false);
  },
);

test('line by line, a line begun before the question answers nothing; one begun after its prompt does', async () => {
  const at = place({ 'docs/a.md': 'x' });
  const screen = openScreen(at, ['-m', script(at, asking), 'go'], { env: { AGENT_PLAIN: '1' } });
  await screen.until(/❯ /);
  screen.type('ye');
  await screen.until(/Run this command\?[\s\S]*Finish this line first; it is not an answer:\s+❯ ye/);
  screen.type('s\r');
  await screen.until(/yes, session, or no \(and why\):/);
  expect(existsSync(join(at.work, 'docs/a.md'))).toBe(true);
  screen.type('yes\r');
  await screen.until(/That is all\./);
  expect(existsSync(join(at.work, 'docs'))).toBe(false);
});

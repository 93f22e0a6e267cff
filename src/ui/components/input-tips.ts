import type { Theme } from '../../kernel/console/theme.js';
import { fitWidth, textWidth } from '../terminal/rows.js';

/** Returns what the empty input says behind its prompt: as much as fits of what can be typed. */
export function inputTips(theme: Theme, columns: number): string {
  const { dot, prompt } = theme.glyphs;
  const room = columns - textWidth(prompt);
  const parts = ['Ask anything', '/ commands', '@ files', '! shell', '? keys'];
  while (parts.length > 1 && textWidth(parts.join(` ${dot} `)) >= room) parts.pop();
  return theme.paint('dim', fitWidth(parts.join(` ${dot} `), Math.max(0, room - 1)));
}

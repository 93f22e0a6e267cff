import type { Theme } from './theme.js';

/** A unified diff by line, coloured. What stands before the first hunk names files and is dimmed. */
export function paintDiff(lines: readonly string[], theme: Theme): string[] {
  return lines.map((line) => {
    if (line.startsWith('+++') || line.startsWith('---') || line.startsWith('Index:') || line.startsWith('===')) return theme.paint('dim', line);
    if (line.startsWith('@@')) return theme.paint('hunk', line);
    if (line.startsWith('+')) return theme.paint('added', line);
    if (line.startsWith('-')) return theme.paint('removed', line);
    return line;
  });
}

import type { ReactNode } from 'react';
import type { QueuedMessage } from '../../core/session-port.js';
import { sanitize } from '../../terminal/sanitize.js';
import { fitWidth } from '../../terminal/width.js';
import { Row, useTheme } from './row.js';

const mostShown = 4;

/** The rows that a queue takes. */
export function queueHeight(queue: readonly QueuedMessage[]): number {
  return Math.min(queue.length, mostShown + 1);
}

/** Messages that wait to be sent, at most `height` rows of them. */
export function Queue({
  queue,
  columns,
  height,
}: {
  readonly queue: readonly QueuedMessage[];
  readonly columns: number;
  readonly height: number;
}): ReactNode {
  const { glyphs } = useTheme();
  const rows = queue.slice(0, mostShown).map(({ text, when }) => {
    const lead = `${glyphs.arrow} ${when === 'steer' ? 'next' : 'after this turn'}: `;
    return fitWidth(lead + sanitize(text).replace(/\s+/g, ' '), columns);
  });
  if (queue.length > mostShown) rows.push(`${glyphs.arrow} ${queue.length - mostShown} more queued`);
  return rows.slice(0, height).map((row, index) => (
    <Row key={index} tone="dim">
      {row}
    </Row>
  ));
}

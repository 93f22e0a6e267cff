import type { InputEvent } from '../../terminal/keyboard.js';
import type { ScreenSize } from '../../terminal/writer.js';

/** A row of what is asked about; a line that goes or comes has the colour of one. */
export interface BodyRow {
  readonly text: string;
  readonly tone: 'added' | 'removed' | null;
}

export interface PanelRow {
  readonly label: string;
  readonly detail: string;
}

/** A structured part of the live region as data; Ink lays it out. All texts are clean already. */
export type Panel =
  | { readonly type: 'menu'; readonly rows: readonly PanelRow[]; readonly selected: number; readonly more: number }
  | {
      readonly type: 'picker';
      readonly title: string;
      readonly query: string;
      readonly rows: readonly PanelRow[];
      readonly selected: number;
      readonly position: string;
      readonly waits: boolean;
      readonly marked: readonly string[];
    }
  | {
      readonly type: 'approval';
      readonly title: string;
      readonly risk: string;
      readonly body: readonly BodyRow[];
      readonly above: number;
      readonly below: number;
      readonly reasons: readonly string[];
      readonly targets: readonly string[];
      readonly choices: readonly string[];
      readonly selected: number;
      readonly message: string | null;
      readonly hint: string;
      readonly waits: boolean;
    }
  | { readonly type: 'running'; readonly calls: readonly RunningRow[]; readonly waiting: number }
  | {
      readonly type: 'pager';
      readonly title: string;
      readonly lines: readonly string[];
      readonly position: string;
      readonly waits: boolean;
    };

export interface RunningRow {
  readonly title: string;
  readonly elapsed: string;
  readonly tail: readonly string[];
}

/** Something that stands in the place of the input and takes the keys. */
export interface Overlay {
  /** `waits`: it takes no key yet, because somebody may still be typing. */
  panel(size: ScreenSize, waits: boolean): Panel;
  /** What of it means nothing here and belongs to the draft: all, nothing (null), or the text behind the key that
   * closed this. */
  take(event: InputEvent): InputEvent | null;
  /** It came by itself, so a key may have been meant for the draft, which stands below it. */
  readonly asks: boolean;
}

/** What stands before the cursor in the last row of a panel. No row stands below the cursor: a smaller window would
 * take those away, and what was on its way then would move it up into what is printed. */
export function beforeCursor(panel: Panel): string {
  if (panel.type === 'picker') return `${panel.title}: ${panel.query}`;
  if (panel.type !== 'approval') return '';
  return panel.message === null ? `  ${panel.choices.at(-1) ?? ''}` : `Why not? ${panel.message}`;
}

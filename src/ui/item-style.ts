import type { Theme } from '../kernel/console/theme.js';
import type { KeyOf } from './editor/keybindings.js';
import type { MarkdownStyle, WrapMode } from './markdown/blocks.js';
import type { Highlight } from './markdown/highlight.js';

/** The layout of the items of a transcript. */
export interface ItemStyle {
  readonly theme: Theme;
  readonly columns: number;
  readonly detail: ResultDetail;
  readonly wrap?: WrapMode | undefined;
  readonly link?: MarkdownStyle['link'];
  /** Missing where no keys are read. */
  readonly keyOf?: KeyOf | undefined;
  /** Colours the code in changes of files. */
  readonly highlight?: Highlight | undefined;
  /** Renders Markdown, which takes longer to load than the rest of the screen. Missing: it is shown as it is. */
  readonly markdown?: ((text: string) => readonly string[]) | undefined;
}

/** The printed part of a result. `short`: up to 20 rows whole, of longer ones the first 5 and the last 15. `full`: up
 * to `maxRows` rows from its beginning. `head`: the few most important rows. `line`: only the row of the call. */
export interface ResultDetail {
  readonly show: 'short' | 'full' | 'head' | 'line';
  readonly maxRows: number;
}

import type { Theme } from '../theme.js';
import type { Panel } from './panel.js';

type RenderPanel = (panel: Panel, theme: Theme, columns: number) => readonly string[];

/** `ready`: the layout engine of the built program starts by itself, and is waited for. */
interface InkPanel {
  readonly renderPanel: RenderPanel;
  readonly ready?: Promise<unknown>;
}

/** Panels laid out by Ink, which is loaded when the first one is wanted. */
export interface Panels {
  /** The rows, or null while Ink loads; `onLoaded` tells when to ask again. */
  rows(panel: Panel, columns: number): readonly string[] | null;
}

export function createPanels(
  theme: Theme,
  onLoaded: () => void,
  load: () => Promise<InkPanel> = () => import('./ink-panel.js'),
): Panels {
  let render: RenderPanel | null = null;
  let loading = false;
  let last: { readonly key: string; readonly rows: readonly string[] } | null = null;
  const start = async (): Promise<void> => {
    const ink = await load();
    await ink.ready;
    render = ink.renderPanel;
    onLoaded();
  };
  return {
    rows: (panel, columns) => {
      if (!render) {
        if (!loading) {
          loading = true;
          void start();
        }
        return null;
      }
      const key = `${columns} ${JSON.stringify(panel)}`;
      if (last?.key !== key) last = { key, rows: render(panel, theme, columns) };
      return last.rows;
    },
  };
}

import type { TableSet } from '../../kernel/store/tables.js';
import type { StashRows } from './stash-rows.js';

/** The table of the stashed prompts. */
export const stashTableSet: TableSet<StashRows> = {
  name: 'prompt stash',
  open: async (place) => (await import('./stash-rows.js')).stashAt(place),
};

import type { Feature } from '../../kernel/console/feature.js';
import { openStash } from './prompt-stash-start.js';

/** Prompts that the user puts aside: a stack that all terminals of a project share. */
export const promptStash: Feature = {
  name: 'prompt-stash',
  openRepl: (host) => Promise.resolve(openStash(host)),
};

/** Loads what compacts a conversation: most runs end before that. */
export const loadCompaction = () => import('./compaction.js');

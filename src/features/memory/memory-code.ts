// The code of this feature. It is loaded with the first use.
export * from './manage-notes.js';
export { openHistory, openMemory, rememberedText, withNotes } from './open-memory.js';

import type { HistoryReader } from './neutral-turns.js';
import type { OpenRows } from './opencode.js';

/** The dependencies of some readers. */
export interface ReaderParts {
  readonly opencodeRows: () => Promise<OpenRows>;
}

/** The programs whose histories are read, by the name that `--from` takes. */
export const programs: Readonly<Record<string, (parts: ReaderParts) => Promise<HistoryReader>>> = {
  'claude-code': async () => (await import('./claude-code.js')).claudeCode,
  codex: async () => (await import('./codex.js')).codex,
  pi: async () => (await import('./pi.js')).pi,
  gemini: async () => (await import('./gemini.js')).geminiCli,
  opencode: async ({ opencodeRows }) => (await import('./opencode.js')).opencode(await opencodeRows()),
  qwen: async () => (await import('./qwen.js')).qwenCode,
  aider: async () => (await import('./aider.js')).aider,
};

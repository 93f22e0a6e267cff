import type { HistoryReader } from './neutral-turns.js';
import type { OpenRows } from './opencode.js';

const load = () => import('./history-readers.js');

/** The dependencies of some readers. */
export interface ReaderParts {
  readonly opencodeRows: () => Promise<OpenRows>;
}

/** The programs whose histories are read, by the name that `--from` takes. */
export const programs: Readonly<Record<string, (parts: ReaderParts) => Promise<HistoryReader>>> = {
  'claude-code': async () => (await load()).claudeCode,
  codex: async () => (await load()).codex,
  pi: async () => (await load()).pi,
  gemini: async () => (await load()).geminiCli,
  opencode: async ({ opencodeRows }) => (await load()).opencode(await opencodeRows()),
  qwen: async () => (await load()).qwenCode,
  aider: async () => (await load()).aider,
};

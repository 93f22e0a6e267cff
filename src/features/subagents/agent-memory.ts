import { join } from 'node:path';
import { projectRoot } from '../../kernel/config/project.js';
import { readBoundedText } from '../../kernel/disk/bounded-file.js';
import type { Settings } from '../../kernel/console/run-settings.js';
import type { AgentRole, MemoryScope } from './roles.js';

const maxBytes = 64 * 1024;
const maxLines = 200;

/** Returns the folder where an agent keeps its notes, the same one that Claude Code uses.
 * Source: code.claude.com/docs/en/sub-agents, "Persistent memory", read 2026-11. */
function memoryFolder(scope: MemoryScope, agent: string, { cwd, home }: Pick<Settings, 'cwd' | 'home'>): string {
  const name = agent.replaceAll(/[^\p{L}\p{N}_-]+/gu, '-');
  if (scope === 'user') return join(home, '.claude', 'agent-memory', name);
  return join(projectRoot({ cwd }), '.claude', scope === 'local' ? 'agent-memory-local' : 'agent-memory', name);
}

/** Adds to the task of an agent the first 200 lines of its notes, and where it keeps them. */
export function withMemory(
  { memory, name }: Pick<AgentRole, 'memory' | 'name'>,
  prompt: string,
  settings: Pick<Settings, 'cwd' | 'home'>,
): string {
  if (memory === null) return prompt;
  const file = join(memoryFolder(memory, name, settings), 'MEMORY.md');
  const text = readBoundedText(file, { maxBytes, longer: 'start', links: 'follow' }) ?? '';
  const lines = text.split('\n').slice(0, maxLines).join('\n').trim();
  const notes = lines === '' ? '(none yet)' : lines;
  return `${prompt}\n\n[Your notes from earlier tasks, in ${file}. Add to that file what will help you later.]\n${notes}`;
}

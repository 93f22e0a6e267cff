import { resolve } from 'node:path';
import { oneLine } from '../../kernel/config/front-matter.js';
import type { Expansion } from '../../kernel/core/session-port.js';
import { withoutEnd } from '../../kernel/core/text.js';
import { statsAt } from '../../kernel/disk/path-stats.js';
import type { AgentRole } from './roles.js';

const mention = /(?<=^|[\s(])@(?:"([^"\n]+)"|([^\s"'`<>()@]+))/g;

/** Expands a message that names agents, as `@reviewer` or `@agent-reviewer`: each does the task, and the message gets
 * its report. A file of that name wins, and other words remain text. Returns null if no agent is named, and a sentence
 * if there is no task. */
export function expandAgents(message: string, agents: readonly AgentRole[], cwd: string): Expansion | string | null {
  const named = new Map<AgentRole, string>();
  for (const [written, quoted, plain = ''] of message.matchAll(mention)) {
    const word = quoted ?? plain.replace(/[.,;:!?]+$/, '');
    const role = isThere(word, cwd) ? undefined : roleOf(word, agents);
    if (role && !named.has(role)) named.set(role, written);
  }
  if (named.size === 0) return null;
  const all = [...named].map(([{ name }, written]) => ({ name, prompt: taskOf(message, written) }));
  const idle = all.find(({ prompt }) => !/[\p{L}\p{N}]/u.test(prompt));
  if (idle) return `The message was not sent: write what ${idle.name} is to do after @${idle.name}.`;
  return {
    command: null,
    calls: all.map(({ name, prompt }) => ({
      name: 'agent',
      arguments: JSON.stringify({ agent: name, prompt, description: oneLine(prompt, 60) }),
    })),
    text: (outputs) =>
      [message, ...outputs.map((output, at) => `Report of ${all[at]?.name ?? ''}:\n${withoutEnd(output, '\n')}`)].join(
        '\n\n',
      ),
  };
}

/** Returns what `@` completes, each with its description. Where a file has the name of an agent, the agent is
 * `agent-` and its name. */
export function completedAgents(agents: readonly AgentRole[], cwd: string): ReadonlyMap<string, string> {
  return new Map(
    agents.map(({ name, description }) => [isThere(name, cwd) ? `agent-${name}` : name, `agent: ${description}`]),
  );
}

function isThere(word: string, cwd: string): boolean {
  return statsAt(resolve(cwd, word)) !== null;
}

function roleOf(word: string, agents: readonly AgentRole[]): AgentRole | undefined {
  const wanted = word.normalize('NFC');
  return agents.find(({ name }) => name === wanted) ?? agents.find(({ name }) => `agent-${name}` === wanted);
}

/** A name at the beginning is no part of the task. */
function taskOf(message: string, written: string): string {
  const text = message.trim();
  return text.startsWith(written) ? text.slice(written.length).replace(/^[\s,:;.!?]+/, '') : text;
}

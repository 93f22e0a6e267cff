import { sanitize } from '../../ui/sanitize.js';
import { entriesOf, type Entry } from './export-entries.js';
import type { ExportedSession } from './export-jsonl.js';
import { localTime } from './record-opening.js';

/** A session as Markdown: what was said as it is, calls and results in fences, the system prompt folded. No control
 * characters: it may be printed on a terminal. */
export function toMarkdown({ row, events }: ExportedSession): string {
  const facts = [
    `- session \`${row.id}\``,
    `- directory \`${row.cwd}\``,
    `- model \`${row.provider ?? '?'}/${row.model ?? '?'}\``,
    `- ${localTime(row.createdAt)} to ${localTime(row.updatedAt)}`,
  ];
  const first = events.find((event) => event.kind === 'user')?.content?.split('\n')[0] ?? row.id;
  return sanitize(
    `# ${(row.title ?? first).slice(0, 120).toWellFormed()}\n\n${facts.join('\n')}\n\n${entriesOf(events).map(block).join('\n\n')}\n`,
  );
}

function block(entry: Entry): string {
  switch (entry.type) {
    case 'system':
      return `<details><summary>System prompt</summary>\n\n${fence(entry.text)}\n\n</details>`;
    case 'user':
      return `## ❯ ${entry.text.includes('\n') ? `\n\n${quoted(entry.text)}` : entry.text}`;
    case 'note':
      return quoted(entry.text);
    case 'assistant':
      return entry.text.trim();
    case 'call':
      return callBlock(entry);
    case 'shell':
      return `**!!** \`${entry.command.replaceAll('`', "'")}\`\n\n${fence(entry.output)}`;
    case 'event':
      return `*${entry.kind}: ${entry.text.replaceAll('\n', ' ')}*`;
    default:
      return entry satisfies never;
  }
}

function callBlock(entry: Extract<Entry, { type: 'call' }>): string {
  const { result } = entry;
  const state =
    result === null ? 'no result' : `${result.success ? '✔' : '✘'} ${result.summary} (${result.durationMs} ms)`;
  const title = `**${entry.tool}** ${state.replaceAll('\n', ' ')}${entry.decision === null ? '' : `, ${entry.decision.replaceAll('\n', ' ')}`}`;
  const parts = [
    fence(entry.arguments, 'json'),
    ...(result === null ? [] : [result.diff === null ? fence(result.output) : fence(result.diff, 'diff')]),
  ];
  return `${title}\n\n${parts.join('\n\n')}`;
}

/** In a fence longer than any in the text. */
function fence(text: string, language = ''): string {
  const longest = Math.max(2, ...[...text.matchAll(/`{3,}/g)].map((found) => found[0].length));
  const marks = '`'.repeat(longest + 1);
  return `${marks}${language}\n${text}${text.endsWith('\n') || text === '' ? '' : '\n'}${marks}`;
}

function quoted(text: string): string {
  return text
    .split('\n')
    .map((line) => `> ${line}`)
    .join('\n');
}

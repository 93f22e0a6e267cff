import { type Event, knownEvent } from '../../core/event.js';
import { project } from '../../core/projection.js';
import { sanitize } from '../../terminal/sanitize.js';
import { localTime } from '../listing.js';
import { entriesOf, type Entry } from './export-entries.js';
import type { ExportedSession } from './session-lines.js';

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

interface ScriptUsage {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cache_read_tokens: number;
  readonly cache_write_tokens: number;
  readonly cost_usd?: number;
}

/** The model's side of a session as a script for `--model offline/<file>` (docs/offline-script.md): one turn for each
 * response, with its calls byte for byte. What was rewound is left out; compactions are left out too, so that every
 * response is there. */
export function toScript(events: readonly Event[]): string {
  const usage = new Map<string, ScriptUsage>();
  for (const raw of events) {
    const event = knownEvent(raw);
    if (event?.kind !== 'usage') continue;
    const {
      response_id: id,
      input_tokens,
      output_tokens,
      cache_read_tokens,
      cache_write_tokens,
      cost_usd,
    } = event.data;
    usage.set(id, {
      input_tokens,
      output_tokens,
      cache_read_tokens: cache_read_tokens ?? 0,
      cache_write_tokens: cache_write_tokens ?? 0,
      ...(cost_usd === null ? {} : { cost_usd }),
    });
  }
  const responseOf = responseIds(events);
  const answers = project(events.filter((event) => !event.kind.startsWith('compaction'))).messages.flatMap((message) =>
    message.role === 'assistant' ? [message] : [],
  );
  const turns = answers.map((message) => {
    const spent = usage.get(responseOf.get(message.seq) ?? '');
    return {
      ...(message.text === '' ? {} : { text: message.text }),
      ...(message.calls.length === 0
        ? {}
        : { calls: message.calls.map((call) => ({ name: call.name, raw: call.arguments, id: call.id })) }),
      ...(message.data?.stop === 'length' ? { stop: 'length' } : {}),
      ...(spent ? { usage: spent } : {}),
    };
  });
  return `${JSON.stringify({ turns }, null, 2)}\n`;
}

/** Response ids by the `seq` of the first row of each response. */
function responseIds(events: readonly Event[]): ReadonlyMap<number, string> {
  const found = new Map<number, string>();
  for (const raw of events) {
    const event = knownEvent(raw);
    if (event?.kind === 'assistant' || event?.kind === 'tool_call') found.set(event.seq, event.data.response_id);
  }
  return found;
}

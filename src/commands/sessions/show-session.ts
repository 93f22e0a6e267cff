import type { Event } from '../../core/event.js';
import { didYouMean, escapedJson } from '../../core/text.js';
import { defaultWire, isWireName, wireNames } from '../../providers/wires/known-wires.js';
import { CliError, type CommandLine, exit, type Verb } from '../command.js';
import { columns, oneLine, printListing } from '../line-output.js';
import { findSession } from './stored-session.js';

interface ShowOptions {
  readonly json?: boolean;
  readonly as?: string;
  readonly prompt?: string;
}

export const showSession: Verb = {
  line: {
    example: `agent sessions show 0198 --as ${defaultWire}`,
    options: (command) =>
      command
        .option('--as <wire>', `the request body: ${wireNames.slice(0, -1).join(', ')} or ${wireNames.at(-1) ?? ''}`)
        .option('--prompt <text>', 'with --as: add this user turn')
        .option('--json', 'one JSON array of events'),
    run: (line, [id = ''], options: ShowOptions) => show(line, id, options),
  },
};

async function show({ out, models, withStore }: CommandLine, id: string, options: ShowOptions): Promise<number> {
  const wire = options.as;
  if (wire !== undefined && !isWireName(wire))
    throw new CliError(
      exit.usage,
      `--as: unknown wire \`${wire}\``,
      `${didYouMean(wire, wireNames)} Known: ${wireNames.join(', ')}`.trim(),
    );
  return await withStore(async ({ store }) => {
    const row = await findSession(store, id);
    const events = await store.load(row.id);
    if (wire !== undefined) {
      const body = await models.requestBody({ row, events, wire, prompt: options.prompt ?? null });
      out.data(`${out.isTerminal ? escapedJson(body) : body}\n`);
      return exit.done;
    }
    const about = [
      row.id,
      row.cwd,
      `${row.provider ?? '?'}/${row.model ?? '?'}`,
      row.baseUrl ?? '',
      oneLine(row.title ?? ''),
    ];
    printListing(
      out,
      options.json,
      events.map(({ seq, kind, content, data, createdAt }) => ({ seq, kind, content, data, created_at: createdAt })),
      () => [...columns([about.filter((cell) => cell !== '')]), ...columns(events.map(eventLine))],
    );
    return exit.done;
  });
}

function eventLine(event: Event): readonly string[] {
  return [String(event.seq), new Date(event.createdAt).toISOString(), event.kind, oneLine(event.content ?? '')];
}

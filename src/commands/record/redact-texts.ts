import { type Event, type EventDraft, knownEvent } from '../../core/event.js';
import { isRecord } from '../../core/json.js';
import { CliError, type CommandLine, exit, type Verb } from '../command.js';
import { countOption } from '../line-output.js';
import { findSession } from '../sessions/stored-session.js';

export const redactTexts: Verb = {
  line: {
    example: 'agent redact 0198 17',
    run: (line, [id = '', seq = '']) => redact(line, id, countOption(seq, 'event', 1)),
  },
};

/** Takes the texts of one event off the record for good. The hash chain stays whole and shows that it was done. */
async function redact({ out, withStore }: CommandLine, id: string, seq: number): Promise<number> {
  return await withStore(async ({ records, store }) => {
    const row = await findSession(store, id);
    const lease = await store.acquire(row.id);
    if (!lease.held)
      throw new CliError(
        exit.session,
        `session ${row.id} is in use by process ${lease.holder.pid}`,
        'Close it there first: it would go on with what is to be redacted.',
      );
    try {
      const event = (await store.load(row.id)).find((item) => item.seq === seq);
      if (!event)
        throw new CliError(
          exit.usage,
          `session ${row.id} has no event ${seq}`,
          `agent sessions show ${row.id} lists them.`,
        );
      const replacement = redactedEvent(event);
      if (!replacement)
        throw new CliError(
          exit.usage,
          `event ${seq} is of kind ${event.kind}, which is not redacted`,
          'It holds no text of its own; redact the call, the answer or the message it belongs to.',
        );
      const count = await records.redact(row.id, seq, replacement);
      out.print(`Redacted event ${seq} of ${row.id}${count > 1 ? ` and ${count - 1} of its copies in forks` : ''}.\n`);
      return exit.done;
    } finally {
      await lease.release();
    }
  });
}

const placeholder = '[redacted by the user]';

/** Returns an event without its texts, so that calls and answers still belong together and a provider accepts the
 * conversation. Null for kinds that hold no text of their own, or structure that the rest of the session depends on. */
function redactedEvent(event: Event): { readonly content: string | null; readonly data: unknown } | null {
  const left = emptied(event);
  const secrets = isRecord(event.data) ? event.data.secrets : undefined;
  // Keyed hashes: without them the next secret would get a number that stands for another one elsewhere.
  return left === null || secrets === undefined ? left : { ...left, data: { ...left.data, secrets } };
}

function emptied(event: Event): Pick<EventDraft, 'content' | 'data'> | null {
  const known = knownEvent(event);
  switch (known?.kind) {
    case 'system':
      return { content: placeholder, data: null };
    case 'user':
      return { content: placeholder, data: known.data?.note ? { note: true } : null };
    case 'assistant': {
      const { response_id, provider, api, model, stop } = known.data;
      return {
        content: known.content === '' ? '' : placeholder,
        data: { response_id, provider, api, model, stop, ...(known.data.interrupted ? { interrupted: true } : {}) },
      };
    }
    case 'tool_call':
      return {
        content: `${known.data.function.name}(${placeholder})`,
        data: { ...known.data, function: { name: known.data.function.name, arguments: '{}' } },
      };
    case 'tool_result': {
      const { tool_call_id, name, success, duration_ms } = known.data;
      return {
        content: placeholder,
        data: {
          tool_call_id,
          name,
          success,
          duration_ms,
          output: JSON.stringify(success ? { output: placeholder } : { error: placeholder, code: 'execution_failed' }),
        },
      };
    }
    case 'shell':
      return { content: placeholder, data: { command: placeholder, exit_code: known.data.exit_code } };
    case 'error':
      return { content: placeholder, data: { code: known.data.code, message: placeholder } };
    case 'approval':
      return { content: placeholder, data: { ...known.data, reasons: [] } };
    case 'hook': {
      const { event, sha256, exit, duration_ms, decision } = known.data;
      return { content: placeholder, data: { event, command: placeholder, sha256, exit, duration_ms, decision } };
    }
    case 'compaction':
      return { content: placeholder, data: known.data };
    default:
      return null;
  }
}

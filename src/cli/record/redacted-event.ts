import { isRecord } from '../../core/json.js';
import { knownEvent, type Event, type EventDraft } from '../../core/event.js';

const mark = '[redacted by the user]';

/** What is left of an event once its texts are taken out: enough that calls and answers still belong together and a
 * provider accepts the conversation. Null for kinds that hold no text of their own, or structure that the rest of the
 * session depends on. */
export function redactedEvent(event: Event): { readonly content: string | null; readonly data: unknown } | null {
  const left = emptied(event);
  const secrets = isRecord(event.data) ? event.data.secrets : undefined;
  // Keyed hashes: without them the next secret would get a number that stands for another one elsewhere.
  return left === null || secrets === undefined ? left : { ...left, data: { ...left.data, secrets } };
}

function emptied(event: Event): Pick<EventDraft, 'content' | 'data'> | null {
  const known = knownEvent(event);
  switch (known?.kind) {
    case 'system':
      return { content: mark, data: null };
    case 'user':
      return { content: mark, data: known.data?.note ? { note: true } : null };
    case 'assistant': {
      const { response_id, provider, api, model, stop } = known.data;
      return {
        content: known.content === '' ? '' : mark,
        data: { response_id, provider, api, model, stop, ...(known.data.interrupted ? { interrupted: true } : {}) },
      };
    }
    case 'tool_call':
      return {
        content: `${known.data.function.name}(${mark})`,
        data: { ...known.data, function: { name: known.data.function.name, arguments: '{}' } },
      };
    case 'tool_result': {
      const { tool_call_id, name, success, duration_ms } = known.data;
      return {
        content: mark,
        data: {
          tool_call_id,
          name,
          success,
          duration_ms,
          output: JSON.stringify(success ? { output: mark } : { error: mark, code: 'execution_failed' }),
        },
      };
    }
    case 'shell':
      return { content: mark, data: { command: mark, exit_code: known.data.exit_code } };
    case 'error':
      return { content: mark, data: { code: known.data.code, message: mark } };
    case 'approval':
      return { content: mark, data: { ...known.data, reasons: [] } };
    case 'compaction':
      return { content: mark, data: known.data };
    default:
      return null;
  }
}

import { parseJson } from '../../kernel/core/json.js';
import { createTimeline, type Event, knownEvent, type ToolCallData } from '../../kernel/core/event.js';
import { isRecord } from '../../kernel/core/json.js';
import { utf8Bytes } from '../../kernel/core/text.js';
import { type DefinedTool, defineTool, failed, succeeded } from '../../kernel/tools/define-tool.js';

const maxKeyChars = 128;
const maxValueBytes = 8 * 1024;
const maxKeys = 100;
const maxBytes = 256 * 1024;
const limits = { timeout_ms: 2000, max_output_bytes: 32_768 };

/** `kv_set` and `kv_get`: small values of one session. They are stored nowhere but in its events, so a session that was
 * resumed, forked or rewound has those of its own past. */
export function keyValueTools(): readonly DefinedTool[] {
  return [
    defineTool({
      name: 'kv_set',
      effect: 'read',
      limits,
      description: 'Set a small key/value',
      schema: {
        type: 'object',
        properties: { k: { type: 'string' }, v: { type: 'string' } },
        required: ['k', 'v'],
        additionalProperties: false,
      },
      judge: () => ({ risk: 'read-only', reasons: [] }),
      run({ k, v }, ctx) {
        const problem = tooMuch(keyValues(ctx.session.events()), k, v);
        return Promise.resolve(
          problem === null ? succeeded(`${k} set`, { output: 'ok', ok: true }) : failed('limit_reached', problem),
        );
      },
    }),
    defineTool({
      name: 'kv_get',
      effect: 'read',
      limits,
      description: 'Get a small value by key',
      schema: { type: 'object', properties: { k: { type: 'string' } }, required: ['k'], additionalProperties: false },
      judge: () => ({ risk: 'read-only', reasons: [] }),
      run({ k }, ctx) {
        const values = keyValues(ctx.session.events());
        const value = values.get(k);
        if (value !== undefined) return Promise.resolve(succeeded(`${k} found`, { output: value }));
        const keys = [...values.keys()];
        const known = keys.length === 0 ? 'Nothing is set yet.' : `Existing keys: ${keys.join(', ')}.`;
        return Promise.resolve(failed('not_found', `There is no value for ${JSON.stringify(k)}. ${known}`, { keys }));
      },
    }),
  ];
}

/** Returns the values of a session: of the calls that succeeded and that no rewind took back. A value that was masked
 * on its way into the log is its placeholder, as the model knows it. */
function keyValues(events: readonly Event[]): ReadonlyMap<string, string> {
  const timeline = createTimeline();
  for (const event of events) {
    const known = knownEvent(event);
    if (known) timeline.add(known);
  }
  const calls = new Map<string, ToolCallData>();
  const values = new Map<string, string>();
  for (const event of timeline.events()) {
    if (event.kind === 'tool_call' && event.data.function.name === 'kv_set') calls.set(event.data.id, event.data);
    if (event.kind !== 'tool_result' || !event.data.success) continue;
    const call = calls.get(event.data.tool_call_id);
    const set = call ? parsePair(call.function.arguments) : null;
    if (set === null) continue;
    // The key that was set last comes last.
    values.delete(set.k);
    values.set(set.k, set.v);
  }
  return values;
}

function parsePair(text: string): { readonly k: string; readonly v: string } | null {
  try {
    const value: unknown = parseJson(text);
    return isRecord(value) && typeof value.k === 'string' && typeof value.v === 'string'
      ? { k: value.k, v: value.v }
      : null;
  } catch {
    return null;
  }
}

function tooMuch(values: ReadonlyMap<string, string>, key: string, value: string): string | null {
  if (key.length > maxKeyChars) return `A key has at most ${maxKeyChars} characters; this one has ${key.length}.`;
  const bytes = utf8Bytes(value);
  if (bytes > maxValueBytes) return `A value has at most ${maxValueBytes} bytes; this one has ${bytes}. Use a file.`;
  const others = [...values].filter(([other]) => other !== key);
  if (others.length >= maxKeys) return `There are ${maxKeys} keys, the maximum; overwrite one of them.`;
  const total = [...others, [key, value] as const].reduce((sum, [k, v]) => sum + utf8Bytes(k) + utf8Bytes(v), 0);
  return total > maxBytes ? `All values together would have ${total} bytes; the limit is ${maxBytes}.` : null;
}

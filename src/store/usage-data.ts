import { isRecord } from '../core/json.js';

/** The most frequent row of all says the same thing over and over: what is left out of a stored `usage` event. */
const counts = ['input_tokens', 'output_tokens', 'cache_read_tokens', 'cache_write_tokens'] as const;

/** The data of the `usage` event `seq` as it is stored: without counts that are 0, a cost that is not known, and a
 * response that has its name from this very event. Data of another shape is stored as it is. */
export function packedUsage(seq: number, data: unknown): unknown {
  if (
    !isUsage(data) ||
    !counts.every((name) => typeof data[name] === 'number') ||
    typeof data.response_id !== 'string' ||
    data.cost_usd === undefined
  )
    return data;
  const packed: Record<string, unknown> = {};
  for (const name of Object.keys(data)) {
    const value = data[name];
    const isSilent =
      value === 0
        ? isCount(name)
        : value === null
          ? name === 'cost_usd'
          : name === 'response_id' && value === ownResponse(seq);
    if (!isSilent) packed[name] = value;
  }
  return packed;
}

/** The same with what was left out. */
export function fullUsage(seq: number, data: unknown): unknown {
  if (!isUsage(data)) return data;
  const {
    response_id = ownResponse(seq),
    provider,
    model,
    input_tokens = 0,
    output_tokens = 0,
    cache_read_tokens = 0,
    cache_write_tokens = 0,
    cost_usd = null,
    ...rest
  } = data;
  return {
    response_id,
    provider,
    model,
    input_tokens,
    output_tokens,
    cache_read_tokens,
    cache_write_tokens,
    cost_usd,
    ...rest,
  };
}

function isUsage(data: unknown): data is Readonly<Record<string, unknown>> {
  return isRecord(data) && typeof data.provider === 'string' && typeof data.model === 'string';
}

function isCount(name: string): boolean {
  return (counts as readonly string[]).includes(name);
}

/** A response is named after its first event. */
function ownResponse(seq: number): string {
  return `r${seq}`;
}

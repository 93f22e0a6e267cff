import { isRecord } from '../core/json.js';

/** A model as a server lists it. Null for what it does not say. */
export interface ListedModel {
  readonly id: string;
  readonly contextWindow: number | null;
}

const windowFields = [
  'loaded_context_length',
  'context_length',
  'context_window',
  'max_context_length',
  'max_model_len',
  'max_input_tokens',
  'inputTokenLimit',
];

/** Reads a list of models in the forms servers give it: `{data: [{id}]}` (OpenAI and alike), `{models: [{name}]}`
 * (Ollama), a bare list. Null where it is none of them. Models that only embed or transcribe are left out where the
 * server says so. */
export function readModelList(body: unknown): readonly ListedModel[] | null {
  const list: unknown = isRecord(body) ? (body.data ?? body.models) : body;
  if (!Array.isArray(list)) return null;
  return (list as readonly unknown[])
    .filter(isRecord)
    .filter((entry) => entry.type !== 'embeddings')
    .flatMap((entry) => {
      const id = [entry.id, entry.name, entry.model].find((value) => typeof value === 'string' && value !== '');
      return typeof id === 'string'
        ? [{ id: id.replace(/^models\//, ''), contextWindow: firstNumber(entry, windowFields) }]
        : [];
    });
}

/** The context window an Ollama server really uses for a model: what it loaded it with (`/api/ps`), else the model's
 * own `num_ctx` (`/api/show`). */
export function readOllamaWindow(running: unknown, shown: unknown, model: string): number | null {
  const loaded = isRecord(running) && Array.isArray(running.models) ? (running.models as readonly unknown[]) : [];
  const same = loaded
    .filter(isRecord)
    .find((entry) => entry.name === model || entry.model === model || entry.name === `${model}:latest`);
  const used = same === undefined ? null : firstNumber(same, ['context_length']);
  if (used !== null) return used;
  const parameters = isRecord(shown) && typeof shown.parameters === 'string' ? shown.parameters : '';
  const set = /^\s*num_ctx\s+(\d+)/m.exec(parameters)?.[1];
  return set === undefined ? null : Number(set);
}

function firstNumber(entry: Readonly<Record<string, unknown>>, fields: readonly string[]): number | null {
  for (const field of fields) {
    const value = entry[field];
    if (typeof value === 'number' && value > 0) return value;
  }
  return null;
}

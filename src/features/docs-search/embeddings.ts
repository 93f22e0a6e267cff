import { parseJson } from '../../kernel/core/json.js';
import type { DocHit, DocIndex, DocPlace } from '../../kernel/core/files/documents.js';
import { isRecord, type Json } from '../../kernel/core/json.js';

export interface EmbeddingsOptions {
  /** Of an endpoint that speaks `/v1/embeddings`, with or without `/v1`. */
  readonly baseUrl: string;
  readonly model: string;
  /** Sent as a bearer token. */
  readonly key?: string | undefined;
  readonly fetch: typeof fetch;
}

interface FusionRequest {
  readonly index: DocIndex;
  readonly place: DocPlace;
  readonly query: string;
  readonly byWords: readonly DocHit[];
  /** Returns true if the time for preparing is over. */
  readonly late: () => boolean;
  readonly signal: AbortSignal;
}

/** Ranks parts of documents by words and by meaning together. */
export interface Embedder {
  /** Never rejects: where the endpoint fails, the ranking by words stays, and `facts` say so. */
  fused(request: FusionRequest): Promise<{
    readonly hits: readonly DocHit[];
    readonly facts: Readonly<Record<string, Json>>;
  }>;
}

const partsAtOnce = 32;
const requestMs = 10_000;
const maxHits = 40;
const maxBytes = 64 * 1024 ** 2;
/** Of reciprocal rank fusion. Source: Cormack, Clarke, Büttcher, SIGIR 2009. */
const rankOffset = 60;

export function createEmbedder(options: EmbeddingsOptions): Embedder {
  const { model } = options;
  const vectorsOf = (texts: readonly string[], signal: AbortSignal): Promise<readonly Float32Array[]> =>
    requestVectors(texts, signal, options);
  return {
    async fused({ index, place, query, byWords, late, signal }) {
      try {
        const [wanted] = await vectorsOf([query], signal);
        while (!late() && !signal.aborted) {
          const parts = index.unembedded(place.root, model, partsAtOnce);
          if (parts.length === 0) break;
          const vectors = await vectorsOf(
            parts.map(({ text }) => text),
            signal,
          );
          index.embed(model, new Map(parts.map(({ id }, at) => [id, vectors[at] ?? new Float32Array()])));
        }
        const left = index.counts(place.root, model).unembedded;
        const byMeaning = wanted ? index.byMeaning(place, model, wanted, maxHits) : [];
        return {
          hits: fuse([byWords, byMeaning]),
          facts: left === 0 ? {} : { not_embedded: left, note: 'Not all passages have vectors yet; ask again.' },
        };
      } catch (error) {
        const problem = error instanceof Error ? error.message : String(error);
        return { hits: byWords, facts: { embeddings: `found only by words: ${problem}` } };
      }
    },
  };
}

/** Merges rankings: each gives 1 / (60 + rank). What several of them found comes first. */
export function fuse(rankings: readonly (readonly DocHit[])[]): readonly DocHit[] {
  const scores = new Map<number, { readonly hit: DocHit; readonly score: number }>();
  for (const ranking of rankings) {
    for (const [rank, hit] of ranking.entries()) {
      const known = scores.get(hit.id);
      scores.set(hit.id, { hit: known?.hit ?? hit, score: (known?.score ?? 0) + 1 / (rankOffset + rank + 1) });
    }
  }
  return [...scores.values()].sort((a, b) => b.score - a.score || a.hit.id - b.hit.id).map(({ hit }) => hit);
}

/** Asks for the vectors of texts, in their order. Rejects with a sentence.
 * Source: OpenAI API reference, "Create embeddings" (read November 2026). */
async function requestVectors(
  texts: readonly string[],
  signal: AbortSignal,
  { baseUrl, model, key, fetch }: EmbeddingsOptions,
): Promise<readonly Float32Array[]> {
  const stop = new AbortController();
  const abort = (): void => {
    stop.abort();
  };
  const timer = setTimeout(abort, requestMs);
  signal.addEventListener('abort', abort, { once: true });
  try {
    const response = await fetch(addressOf(baseUrl), {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(key === undefined ? {} : { authorization: `Bearer ${key}` }) },
      body: JSON.stringify({ model, input: texts }),
      redirect: 'error',
      signal: stop.signal,
    });
    if (!response.ok) throw new Error(`${addressOf(baseUrl)} answered ${response.status}`);
    return vectorsIn(parseJson(await boundedText(response)), texts.length);
  } catch (error) {
    throw stop.signal.aborted && !signal.aborted
      ? new Error(`${addressOf(baseUrl)} did not answer within ${requestMs / 1000} s`, { cause: error })
      : error;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
  }
}

function addressOf(baseUrl: string): string {
  const base = baseUrl.replace(/\/+$/, '').replace(/\/embeddings$/, '');
  return `${/\/v\d+$/.test(base) ? base : `${base}/v1`}/embeddings`;
}

async function boundedText(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > maxBytes) throw new Error('the answer is too long');
  }
  return text;
}

/** Answers may come in any order; `index` says which is which. */
function vectorsIn(answer: unknown, count: number): readonly Float32Array[] {
  const data: unknown = isRecord(answer) ? answer['data'] : undefined;
  const vectors: Float32Array[] = [];
  for (const [at, item] of (Array.isArray(data) ? data : []).entries()) {
    const found: unknown = isRecord(item) ? item['embedding'] : undefined;
    const index = isRecord(item) && typeof item['index'] === 'number' ? item['index'] : at;
    if (Array.isArray(found) && found.length > 0 && found.every((value) => typeof value === 'number'))
      vectors[index] = Float32Array.from(found);
  }
  const complete = Array.from({ length: count }, (_, at) => vectors[at]);
  if (complete.some((vector) => vector === undefined || vector.length !== complete[0]?.length))
    throw new Error('the answer does not contain a vector for each text');
  return vectors;
}

import type { Fault, ModelRequest, PaidSearch, Provider } from '../core/provider.js';

/** A provider as it was opened with one key. */
export interface KeyedProvider {
  readonly provider: Provider;
  readonly key: string | null;
  warm(): void;
  close(): void;
}

interface Parts {
  /** The key that counts now; null where there is none. */
  readonly keyNow: () => string | null;
  /** Opens the same provider with the key that counts now; a fault where there is none. */
  readonly reopen: () => Promise<KeyedProvider | Fault>;
  /** Whether a fault says that the key was refused. */
  readonly refusesKey: (fault: Fault) => Promise<boolean>;
  /** Asks for another key. False: there is none, and the fault stands. */
  readonly askForKey: (fault: Fault, signal: AbortSignal) => Promise<boolean>;
}

/** Wraps a provider whose key may change: its requests go out with the key that counts when they are sent. Where the
 * key is refused and somebody enters another, the request waits for it and is sent again. */
export function renewProvider(first: KeyedProvider, d: Parts): Omit<KeyedProvider, 'key'> {
  let current = first;
  const renewed = async (): Promise<Provider | Fault> => {
    if (d.keyNow() === current.key) return current.provider;
    const next = await d.reopen();
    if (!('provider' in next)) return next;
    current.close();
    current = next;
    return next.provider;
  };
  return {
    warm: () => {
      current.warm();
    },
    close: () => {
      current.close();
    },
    provider: {
      stream: (request) => sent(request, renewed, d),
      ...(first.provider.search
        ? {
            search: async (request, ref) => {
              const provider = await renewed();
              const paid = 'stream' in provider ? await provider.search?.(request, ref) : null;
              return paid ?? noSearch;
            },
          }
        : {}),
    },
  };
}

const noSearch: PaidSearch = {
  answer: { ok: false, reason: 'failed', message: 'There is no key for this search any more.' },
  usage: null,
  costUsd: null,
};

async function* sent(
  request: ModelRequest,
  renewed: () => Promise<Provider | Fault>,
  d: Parts,
): ReturnType<Provider['stream']> {
  for (;;) {
    const provider = await renewed();
    let refusal: Fault | null = 'stream' in provider ? null : provider;
    if ('stream' in provider) {
      for await (const chunk of provider.stream(request)) {
        if (chunk.type === 'fault' && (await d.refusesKey(chunk.fault))) refusal = chunk.fault;
        else yield chunk;
      }
    }
    if (refusal === null) return;
    if (await d.askForKey(refusal, request.signal)) continue;
    yield { type: 'fault', fault: refusal };
    return;
  }
}

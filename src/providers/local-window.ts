import type { ModelRequest, Provider } from '../core/provider.js';

/** A session with tools soon outgrows a smaller window. */
const smallWindowTokens = 8192;

export interface LocalWindow {
  readonly label: string;
  /** Tokens that the server uses for a model; null where it does not say. Asked after an answer, because the model is
   * loaded only then. */
  ask(model: string): Promise<number | null>;
}

/** Warns once where the context window of a local server is small, and once where a request does not fit into it. Such
 * servers cut the beginning of a longer request silently, so that the model forgets its instructions. */
export function watchLocalWindow(provider: Provider, local: LocalWindow): Provider {
  const windows = new Map<string, number | null>();
  const said = new Set<string>();
  const windowOf = async (model: string): Promise<number | null> => {
    const known = windows.get(model);
    if (known !== undefined && known !== null) return known;
    const window = await local.ask(model);
    windows.set(model, window);
    return window;
  };
  return {
    async *stream(request) {
      let reported = 0;
      for await (const chunk of provider.stream(request)) {
        if (chunk.type === 'usage') reported = chunk.usage.input + chunk.usage.cacheRead + chunk.usage.cacheWrite;
        if (chunk.type === 'end') {
          const window = await windowOf(request.ref.model);
          const message =
            window === null
              ? null
              : describe(local.label, request.ref.model, window, Math.max(reported, estimate(request)));
          const key = `${request.ref.model} ${message?.isCut === true}`;
          if (message !== null && !said.has(key))
            yield { type: 'notice', level: 'warn', code: 'context_window', message: message.text };
          if (message !== null) said.add(key);
        }
        yield chunk;
      }
    },
  };
}

function describe(
  label: string,
  model: string,
  window: number,
  tokens: number,
): { readonly text: string; readonly isCut: boolean } | null {
  const remedy =
    'Give it more: OLLAMA_CONTEXT_LENGTH or num_ctx for Ollama, the context length at loading for LM Studio.';
  const cut = 'the server cuts its beginning silently';
  const uses = `${label} uses a context window of`;
  if (tokens > window * 0.95)
    return {
      isCut: true,
      text: `${uses} ${window} tokens for ${model} and this request has about ${tokens}: ${cut}. ${remedy}`,
    };
  return window < smallWindowTokens
    ? {
        isCut: false,
        text: `${uses} only ${window} tokens for ${model}: the server cuts longer requests silently. ${remedy}`,
      }
    : null;
}

/** Estimates the tokens of a request at four characters each. */
function estimate({ conversation }: ModelRequest): number {
  return Math.ceil(
    (conversation.system.length + JSON.stringify([conversation.tools, conversation.messages]).length) / 4,
  );
}

export interface HttpRequest {
  readonly method: 'GET' | 'POST';
  readonly url: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  readonly signal: AbortSignal;
}

/** An answer's head, and its body still to be read. */
export interface Answer {
  readonly status: number;
  /** Names in lower case; repeated ones joined with ", ". */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: AnswerBody;
}

/** Decoded bytes in order. Reading rejects with an `HttpFailure`. Exactly one of reading to the end, `release` and
 * `destroy` must happen. */
export interface AnswerBody extends AsyncIterable<Uint8Array> {
  /** Reads what is left in the background, so that the connection can serve the next request; gives up on an answer
   * that does not end. Resolves at once, never waiting for the server. */
  release(): Promise<void>;
  destroy(): void;
}

/** Sends one request. Never follows a redirect, never retries an answer. Rejects with an `HttpFailure`, or with
 * anything once `signal` is aborted. */
export type Send = (request: HttpRequest) => Promise<Answer>;

export interface Transport {
  readonly send: Send;
  /** Opens a connection ahead of the first request. Errors show at the request. */
  warm(url: string): void;
  close(): void;
}

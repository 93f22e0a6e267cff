import type { ErrorCode } from '../core/envelope.js';
import type { Json } from '../core/json.js';

/** An error for the model: the reason why a request gave no result. */
export class WebRefusal extends Error {
  readonly code: ErrorCode;
  readonly details: Json | undefined;

  constructor(code: ErrorCode, message: string, details?: Json) {
    super(message);
    this.code = code;
    this.details = details;
  }
}

import type { ErrorCode } from '../core/envelope.js';
import type { Json } from '../core/json.js';

/** Why a request gave nothing, for the model. */
export class WebRefusal extends Error {
  readonly code: ErrorCode;
  readonly details: Json | undefined;

  constructor(code: ErrorCode, message: string, details?: Json) {
    super(message);
    this.code = code;
    this.details = details;
  }
}

import { StoreError } from '../store/store-error.js';

import { missingPart } from './missing-part.js';

/** Exit codes. Source: contracts 1. */
export const exit = {
  done: 0,
  failed: 1,
  usage: 2,
  limit: 3,
  credentials: 4,
  cost: 5,
  denied: 6,
  session: 7,
  interrupted: 130,
  terminated: 143,
} as const;

/** A failure the person can act on: printed as `agent: <message>` and the hint on the next line, then the program ends
 * with `exitCode`. */
export class CliError extends Error {
  readonly exitCode: number;
  readonly hint: string;

  constructor(exitCode: number, message: string, hint: string) {
    super(message);
    this.name = 'CliError';
    this.exitCode = exitCode;
    this.hint = hint;
  }
}

/** The two lines on stderr. No stack trace unless `debug`. */
export function describeFailure(error: unknown, debug: boolean): { readonly text: string; readonly exitCode: number } {
  const failure = error instanceof CliError ? error : null;
  const { message, hint } = failure ??
    storeProblem(error) ??
    missingPart(error) ?? {
      message: error instanceof Error ? error.message : String(error),
      hint: 'This is a bug in agent. Run again with --debug for a stack trace.',
    };
  const stack = debug && error instanceof Error && error.stack ? `\n${error.stack}` : '';
  return { text: `agent: ${message}\n${hint}${stack}\n`, exitCode: failure?.exitCode ?? exit.failed };
}

function storeProblem(error: unknown): { readonly message: string; readonly hint: string } | null {
  return error instanceof StoreError && error.hint !== '' ? error : null;
}

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

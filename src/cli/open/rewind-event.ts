import type { EventDraft } from '../../core/event.js';
import { CliError, exit } from '../../commands/cli-error.js';

/** The conversation goes on from right after event `seq`. */
export function rewindTo(seq: number): EventDraft {
  return { kind: 'rewind', content: `Rewound to event ${seq}.`, data: { to_seq: seq } };
}

/** The value of `--at`. Throws a `CliError` (2) for what is no number of an event. */
export function eventNumber(text: string | undefined): { readonly at?: number } {
  if (text === undefined) return {};
  const at = Number(text);
  if (!Number.isInteger(at) || at < 1)
    throw new CliError(
      exit.usage,
      `--at: \`${text}\` is not the number of an event`,
      'agent sessions show <session> lists them.',
    );
  return { at };
}

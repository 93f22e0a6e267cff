import type { TurnEnd } from '../../kernel/core/session-port.js';
import type { EndedTurn } from './messages.js';

/** Returns the end of a turn as clients get it. */
export function endedTurn({ status, fault, heldMessage }: TurnEnd): EndedTurn {
  const held = heldMessage === undefined ? {} : { held: heldMessage };
  if (!fault) return { status, ...held };
  const { code, message, hint = '' } = fault;
  return { status, fault: { code, message, hint }, ...held };
}

import type { QueuedMessage, SessionPort } from './session-port.js';

/** Returns true for a message of another process, which stays what it is: it is not joined with others, and the user of
 * this process cannot take it back. */
export function isFromElsewhere({ id }: QueuedMessage): boolean {
  return id !== undefined;
}

/** Takes the messages that were typed here out of the queue, oldest first. Those of other processes stay there. */
export function takeTyped(session: Pick<SessionPort, 'takeQueue' | 'enqueue'>): readonly QueuedMessage[] {
  const queue = session.takeQueue();
  for (const message of queue.filter(isFromElsewhere)) session.enqueue(message);
  return queue.filter((message) => !isFromElsewhere(message));
}

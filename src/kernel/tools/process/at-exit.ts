const callbacks = new Set<() => void>();

function callAll(): void {
  for (const callback of callbacks) callback();
}

/** Calls `callback` synchronously when our own process exits. All callbacks share one listener, so that any number of
 * sessions in one process causes no warning. Returns what takes it back. */
export function atExit(callback: () => void): () => void {
  if (callbacks.size === 0) process.once('exit', callAll);
  callbacks.add(callback);
  return () => {
    callbacks.delete(callback);
    if (callbacks.size === 0) process.off('exit', callAll);
  };
}

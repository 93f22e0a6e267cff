/** Shows a new process that it begins in the background. It does not pass it on. */
export const detachedMark = 'AGENT_DETACHED';

/** Reports to the process that has started this one, once. */
export type Report = (sessionId: string) => void;

/** Returns how to report where this process was started in the background; else null. */
export function startedDetached(): Report | null {
  if (process.env[detachedMark] === undefined || !process.connected) return null;
  Reflect.deleteProperty(process.env, detachedMark);
  return (session) => {
    process.send?.({ session }, () => {
      if (process.connected) process.disconnect();
    });
  };
}

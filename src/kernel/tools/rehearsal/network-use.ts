import { closeSync, openSync, readSync } from 'node:fs';

/** The counters of a network namespace that show an attempt: a packet had no route, or a service on loopback did not
 * answer. Sources: Linux, Documentation/networking/snmp_counter.rst; RFC 4293, ipSystemStatsOutNoRoutes; RFC 4022,
 * tcpAttemptFails. */
const names: readonly (readonly [protocol: string, counter: string])[] = [
  ['Ip', 'OutNoRoutes'],
  ['Tcp', 'AttemptFails'],
  ['Udp', 'NoPorts'],
];

/** Watches whether the processes of a network namespace without a way out try to reach something. */
export interface NetworkUse {
  /** Returns true if they have tried. The counters can be read after the last process has ended. */
  tried(): boolean;
  close(): void;
}

/** Opens the counters of the namespace of a process, as nothing inside can change them. Throws where they cannot be
 * opened. */
export function openNetworkUse(pid: number): NetworkUse {
  const old = openSync(`/proc/${pid}/net/snmp`, 'r');
  let newer: number;
  try {
    newer = openSync(`/proc/${pid}/net/snmp6`, 'r');
  } catch {
    newer = -1; // the machine has no IPv6
  }
  return {
    tried: () =>
      hasTried(contentOf(old)) || (newer >= 0 && /^(?:Ip6OutNoRoutes|Udp6NoPorts)\s+[1-9]/m.test(contentOf(newer))),
    close: () => {
      closeSync(old);
      if (newer >= 0) closeSync(newer);
    },
  };
}

function hasTried(text: string): boolean {
  return names.some(([protocol, counter]) => {
    const [head = '', values = ''] = text.split('\n').filter((line) => line.startsWith(`${protocol}: `));
    const at = head.split(' ').indexOf(counter);
    return at > 0 && Number(values.split(' ')[at] ?? 0) > 0;
  });
}

/** A text that counts as an attempt, used if the counters cannot be read: the user is asked then. */
const unreadable = 'Ip: OutNoRoutes\nIp: 1\n';

function contentOf(descriptor: number): string {
  const bytes = Buffer.alloc(16_384);
  try {
    return bytes.toString('latin1', 0, readSync(descriptor, bytes, 0, bytes.length, 0));
  } catch {
    return unreadable;
  }
}

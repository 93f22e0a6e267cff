import { didYouMean } from '../../kernel/core/text.js';
import type { Clock } from '../../kernel/core/runtime.js';
import { type DefinedTool, defineTool, failed, outOfBounds, succeeded } from '../../kernel/tools/define-tool.js';

export interface ClockOptions {
  /** Unix ms. */
  readonly now: Clock;
  /** The zone of a call that names none: that of the machine, unless given. */
  readonly timezone?: string;
}

/** `get_time`: the current time in a zone of the IANA database. */
export function clockTools({ now, timezone }: ClockOptions): readonly DefinedTool[] {
  return [
    defineTool({
      name: 'get_time',
      otherNames: ['get_current_time'],
      effect: 'read',
      limits: { timeout_ms: 2000, max_output_bytes: 32_768 },
      description: 'Returns the current local time.',
      schema: {
        type: 'object',
        properties: { timezone: { type: 'string' } },
        additionalProperties: false,
      },
      check: (args) => outOfBounds(args, { timezone: [1, 64] }),
      judge: () => ({ risk: 'read-only', reasons: [] }),
      run(args) {
        const wanted = args.timezone ?? timezone;
        const zone = knownZone(wanted);
        if (zone === null) return Promise.resolve(unknownZone(wanted ?? ''));
        const unixMs = now();
        const output = localIso(unixMs, zone);
        return Promise.resolve(succeeded(output, { output, timezone: zone, unix_ms: unixMs }));
      },
    }),
  ];
}

/** Returns the full name of a zone, of the machine's own where none is named, or null for an unknown name. Offsets are
 * none: only some versions of Node know them, and they say nothing of summer time. */
function knownZone(name: string | undefined): string | null {
  if (name !== undefined && !/^[A-Za-z]/.test(name)) return null;
  try {
    const known = new Intl.DateTimeFormat('en-US', { timeZone: name }).resolvedOptions().timeZone;
    // The runtime replaces some names with older ones: Asia/Kolkata with Asia/Calcutta.
    return name === undefined || known.toLowerCase() === name.toLowerCase() ? known : name;
  } catch {
    return null;
  }
}

function unknownZone(name: string) {
  const hint = didYouMean(name, Intl.supportedValuesOf('timeZone'));
  return failed(
    'invalid_args',
    `There is no time zone ${JSON.stringify(name)}; give an IANA name such as Europe/Berlin, or UTC. ${hint}`.trim(),
    { argument: 'timezone', problem: 'unknown', expected: 'an IANA name' },
  );
}

/** Returns `2026-01-27T14:35:00+01:00`: the clock on the wall of a zone, and how far it is ahead of UTC then. */
function localIso(unixMs: number, zone: string): string {
  const form = new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    calendar: 'gregory',
    numberingSystem: 'latn',
    hourCycle: 'h23',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    timeZoneName: 'longOffset',
  });
  const part = Object.fromEntries(form.formatToParts(unixMs).map(({ type, value }) => [type, value]));
  const offset = (part.timeZoneName ?? '').replace('GMT', '') || '+00:00';
  const year = (part.year ?? '').padStart(4, '0');
  return `${year}-${part.month}-${part.day}T${part.hour}:${part.minute}:${part.second}${offset}`;
}

/** One file, link or folder that a rehearsed command wrote. `added` and `removed` count lines of text; both are 0 for
 * anything else. */
export type WrittenPath = {
  /** Absolute. */
  readonly path: string;
  readonly change: 'created' | 'changed' | 'attributes';
  readonly added: number;
  readonly removed: number;
};

/** The effects that a command had in a rehearsal. Source: contracts 10, "What decided a call". */
export type Effects = {
  readonly written: readonly WrittenPath[];
  /** Absolute paths of files, and of folders that were empty. */
  readonly deleted: readonly string[];
  /** It tried to reach the network, or a service of this machine. */
  readonly network: boolean;
};

/** Names what decided a call. Source: contracts 10. */
export type Decider = 'static' | 'rehearsal' | 'rule' | 'mode' | 'user' | 'hook';

/** The effects of a rehearsal that decide whether `agent` asks. */
interface ObservedRun {
  readonly effects: Effects;
  /** The reason why the rehearsal does not show all effects of the command; null if it shows them. */
  readonly unclear: string | null;
}

/** Returns true if the user has to approve a command because of its rehearsal. */
export function hasEffects({ effects, unclear }: ObservedRun): boolean {
  return effects.network || unclear !== null || effects.written.length + effects.deleted.length > 0;
}

const maxListed = 5;

/** Says what a command would do, without a subject: `would write 14 files (dist/app.js +210, …) and use the network`.
 * Deletions come first. `shown` shortens a path. */
export function effectsText(
  { effects, unclear }: ObservedRun,
  shown: (path: string) => string = (path) => path,
): string {
  const { written, deleted, network } = effects;
  const parts = [
    ...(deleted.length > 0 ? [`delete ${counted(deleted.length, 'file')} (${formatList(deleted.map(shown))})`] : []),
    ...(written.length > 0
      ? [`write ${counted(written.length, 'file')} (${formatList(written.map((one) => writtenText(one, shown)))})`]
      : []),
    ...(network ? ['use the network'] : []),
  ];
  if (parts.length === 0)
    return unclear === null ? 'would change nothing' : `would do more than a rehearsal shows: ${unclear}`;
  return `would ${parts.join(' and ')}${unclear === null ? '' : `; ${unclear}`}`;
}

function writtenText({ path, change, added, removed }: WrittenPath, shown: (path: string) => string): string {
  const lines = [...(added > 0 ? [`+${added}`] : []), ...(removed > 0 ? [`-${removed}`] : [])];
  return [shown(path), ...(change === 'attributes' ? ['(attributes)'] : lines)].join(' ');
}

/** Every effect on a line of its own, deletions first. */
export function effectLines(
  { written, deleted, network }: Effects,
  shown: (path: string) => string,
): readonly string[] {
  return [
    ...deleted.map((path) => `deletes ${shown(path)}`),
    ...written.map((one) => `${one.change === 'created' ? 'creates' : 'changes'} ${writtenText(one, shown)}`),
    ...(network ? ['uses the network'] : []),
  ];
}

function counted(number: number, what: string): string {
  return `${number} ${number === 1 ? what : `${what}s`}`;
}

function formatList(texts: readonly string[]): string {
  return texts.length <= maxListed
    ? texts.join(', ')
    : [...texts.slice(0, maxListed), `… ${texts.length - maxListed} more`].join(', ');
}

import type { DesktopNotification } from '../../kernel/console/slash-command.js';
import type { ReplNotices } from '../../kernel/console/feature.js';
import type { ReplHandle, ReplOptions } from '../../ui/repl-options.js';

type Start = (options: ReplOptions) => ReplHandle;
type Level = Parameters<ReplNotices['notice']>[0];

/** The most notices that are kept while no screen is open; the oldest are dropped. */
const mostUnseen = 50;

/** The screens of a process, as one: what is said comes to all of them. The next one
 * shows what was said while there was none. */
export class Screens implements Omit<ReplNotices, 'leave'> {
  readonly #handles = new Set<ReplHandle>();
  #unseen: { readonly level: Level; readonly message: string }[] = [];

  /** Starts a screen. It is one of them until it has ended. */
  open(start: Start, options: ReplOptions): ReplHandle {
    let ended = false;
    let handle: ReplHandle | null = null;
    handle = start({
      ...options,
      onExit: () => {
        ended = true;
        if (handle) this.#handles.delete(handle);
        options.onExit();
      },
    });
    if (ended) return handle;
    this.#handles.add(handle);
    for (const { level, message } of this.#unseen.splice(0)) handle.notice(level, message);
    return handle;
  }

  notice(level: Level, message: string): void {
    if (this.#handles.size === 0) this.#unseen = [...this.#unseen, { level, message }].slice(-mostUnseen);
    for (const handle of this.#handles) handle.notice(level, message);
  }
  remind(said: DesktopNotification): void {
    if (this.#handles.size === 0) this.notice('info', `${said.title}: ${said.text}`);
    for (const handle of this.#handles) handle.remind(said);
  }
  refresh(): void {
    for (const handle of this.#handles) handle.refresh();
  }
  exit(): void {
    for (const handle of this.#handles) handle.exit();
  }
}

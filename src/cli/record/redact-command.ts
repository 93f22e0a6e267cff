import { redactEvent } from '../../store/records.js';
import { CliError, exit } from '../cli-error.js';
import type { RootOptions } from '../options.js';
import { countOption, withStore } from './record-opening.js';
import { redactedEvent } from './redacted-event.js';
import { findSession } from '../open/session-files.js';
import { forgetFrames } from '../repl/kept-frame.js';
import { print } from '../print.js';

/** `agent redact <session> <seq>`: takes the texts of one event off the record for good. The hash chain stays whole and
 * shows that it was done. */
export async function redactSession(id: string, seqText: string, options: RootOptions): Promise<number> {
  const seq = countOption(seqText, 'event', 1);
  return await withStore(options, async (store, setup) => {
    const row = await findSession(store, id);
    const lease = await store.acquire(row.id);
    if (!lease.held)
      throw new CliError(
        exit.session,
        `session ${row.id} is in use by process ${lease.holder.pid}`,
        'Close it there first: it would go on with what is to be redacted.',
      );
    try {
      const event = (await store.load(row.id)).find((item) => item.seq === seq);
      if (!event)
        throw new CliError(
          exit.usage,
          `session ${row.id} has no event ${seq}`,
          `agent sessions show ${row.id} lists them.`,
        );
      const replacement = redactedEvent(event);
      if (!replacement)
        throw new CliError(
          exit.usage,
          `event ${seq} is of kind ${event.kind}, which is not redacted`,
          'It holds no text of its own; redact the call, the answer or the message it belongs to.',
        );
      forgetFrames(process.env);
      const count = await redactEvent(setup.config.files.database, row.id, seq, replacement);
      print(`Redacted event ${seq} of ${row.id}${count > 1 ? ` and ${count - 1} of its copies in forks` : ''}.\n`);
      return exit.done;
    } finally {
      await lease.release();
    }
  });
}

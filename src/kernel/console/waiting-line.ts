import { eraseErrorRow, errorsAreTerminal, outputIsTerminal } from './print.js';

/** The row is written by another thread, or the work has ended. */
const states = { none: 0, writing: 1, written: 2, ended: 3 } as const;
const shownAfterMs = 1000;
/** Writing a row takes far less. */
const longestWriteMs = 500;

const source = `
const { state, text } = require('node:worker_threads').workerData;
const isLong = Atomics.wait(state, 0, ${states.none}, ${shownAfterMs}) === 'timed-out';
if (isLong && Atomics.compareExchange(state, 0, ${states.none}, ${states.writing}) === ${states.none}) {
  try {
    require('node:fs').writeSync(2, text);
  } catch {}
  Atomics.store(state, 0, ${states.written});
  Atomics.notify(state, 0);
}`;

/** Shows a row on standard error, where that is a terminal, once a second has passed. Returns what clears it. Another
 * thread writes it, because SQLite keeps this one busy. Ctrl-C ends such a command at once: no handler waits for it. */
function showWaiting(): () => void {
  if (!errorsAreTerminal()) return () => undefined;
  const state = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const { Worker } = process.getBuiltinModule('node:worker_threads');
  new Worker(source, { eval: true, workerData: { state, text: 'Reading the record …' } }).unref();
  return () => {
    const before = Atomics.compareExchange(state, 0, states.none, states.ended);
    Atomics.notify(state, 0);
    if (before === states.none) return;
    Atomics.wait(state, 0, states.writing, longestWriteMs);
    if (Atomics.exchange(state, 0, states.ended) !== states.ended) eraseErrorRow();
  };
}

/** Says that the record is read while `work` takes long. */
export async function whileAsking<T>(work: () => Promise<T>): Promise<T> {
  const end = showWaiting();
  try {
    return await work();
  } finally {
    end();
  }
}

/** Says that the record is read while `rows` take long: on a terminal that shows the rows too, until the first of them. */
export async function* whileReading<T>(rows: AsyncIterable<T>): AsyncGenerator<T> {
  const end = showWaiting();
  try {
    for await (const row of rows) {
      if (outputIsTerminal()) end();
      yield row;
    }
  } finally {
    end();
  }
}

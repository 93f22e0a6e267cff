import { closeSync, constants, fstatSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import { type ConnectOpts, Socket, type SocketConstructorOpts } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The pipe for the output of one command. */
export interface OutputPipe {
  /** The end of the child. The caller closes it once the child has it. */
  readonly writeEnd: number;
  /** Calls back with each piece and with `stream`. All pieces share one buffer, so each is valid during the call only.
   */
  read<Stream>(onData: (chunk: Buffer, stream: Stream) => void, stream: Stream): PipeReader;
}

export interface PipeReader {
  /** Resolves when no process is left that could write. */
  readonly closed: Promise<void>;
  /** Goes on reading, but does not keep our own process alive. */
  unref(): void;
}

/** Real pipes. A script can open them by name (`> /dev/stderr`), and they are read into one buffer. Node itself makes
 * sockets, which allow neither. A pipe is used again once all its writers are gone. */
export interface OutputPipes {
  /** Makes sure that `count` pipes can be taken now. Returns false if there are none here. */
  prepare(count: number): Promise<boolean>;
  /** Takes `count` pipes. The caller reads each of them, even if the child could not be started: a pipe is free again
   * when it is closed. */
  take(count: number): readonly OutputPipe[];
}

/** A named pipe. Its name is gone once it is open here, and `path` leads to it through our own descriptor. */
interface NamedPipe {
  readonly path: string;
  readonly buffer: Buffer;
}

/** The capacity of a pipe. */
const bufferBytes = 65_536;
const names = ['0', '1'] as const;

/** `makeNamed` makes the named pipes `0` and `1` in a folder and returns whether it succeeded. */
export function createOutputPipes(makeNamed: (folder: string) => Promise<boolean>): OutputPipes {
  const free: NamedPipe[] = [];
  let none = process.platform !== 'linux';
  return {
    async prepare(count) {
      while (!none && free.length < count) {
        const made = await makePipes(makeNamed);
        if (made) free.push(...made);
        else none = true;
      }
      return !none;
    },
    take: (count) =>
      free.splice(0, count).map((pipe) =>
        opened(pipe, () => {
          free.push(pipe);
        }),
      ),
  };
}

async function makePipes(makeNamed: (folder: string) => Promise<boolean>): Promise<readonly NamedPipe[] | null> {
  let folder: string | undefined;
  const remove = (): void => {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  };
  process.once('exit', remove);
  try {
    folder = mkdtempSync(join(tmpdir(), 'agent-pipes-'));
    if (!(await makeNamed(folder))) return null;
    return names.map((name) => named(join(folder ?? '', name)));
  } catch {
    return null; // no room, no right, no /proc
  } finally {
    process.off('exit', remove);
    remove();
  }
}

function named(path: string): NamedPipe {
  const kept = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  if (!fstatSync(kept).isFIFO()) throw new Error(`${path} is no pipe`);
  return { path: `/proc/self/fd/${kept}`, buffer: Buffer.allocUnsafeSlow(bufferBytes) };
}

function opened({ path, buffer }: NamedPipe, release: () => void): OutputPipe {
  const readEnd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  let writeEnd: number;
  try {
    writeEnd = openSync(path, constants.O_WRONLY);
  } catch (error) {
    closeSync(readEnd);
    throw error;
  }
  return {
    writeEnd,
    read(onData, stream) {
      const callback = (length: number): boolean => {
        // A direct call would be inlined here and again in Node's caller, which costs a twelfth of our CPU time in a
        // flood of output.
        Reflect.apply(onData, undefined, [buffer.subarray(0, length), stream]);
        return true;
      };
      const options: SocketConstructorOpts & Pick<ConnectOpts, 'onread'> = {
        fd: readEnd,
        readable: true,
        writable: false,
        onread: { buffer, callback },
      };
      const socket = new Socket(options);
      socket.on('error', () => undefined);
      socket.once('end', () => {
        socket.destroy();
      });
      const closed = new Promise<void>((resolve) => {
        socket.once('close', () => {
          release();
          resolve();
        });
      });
      return {
        closed,
        unref: () => {
          socket.unref();
        },
      };
    },
  };
}

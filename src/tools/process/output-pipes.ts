import { closeSync, constants, fstatSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import { type ConnectOpts, Socket, type SocketConstructorOpts } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Where one command's output comes through. */
export interface OutputPipe {
  /** The child's end; ours to close once the child has it. */
  readonly writeEnd: number;
  /** All pieces come in one buffer: each is there for the call alone. `stream` is passed on with each. */
  read<Stream>(onData: (chunk: Buffer, stream: Stream) => void, stream: Stream): PipeReader;
}

export interface PipeReader {
  /** When nobody is left who could write. */
  readonly closed: Promise<void>;
  /** It goes on reading, and does not keep our own process alive. */
  unref(): void;
}

/** True pipes, which a script can open by name (`> /dev/stderr`) and which are read without a new buffer for each
 * piece. Neither holds for what Node makes by itself, which are sockets. A pipe is used again once all its writers are
 * gone. */
export interface OutputPipes {
  /** Sees to it that so many can be taken now; false where there are none here. */
  prepare(count: number): Promise<boolean>;
  /** Each is to be read, also where no child has come of it: it is free again when it is closed. */
  take(count: number): readonly OutputPipe[];
}

/** A pipe has a name only until it is open here: `path` leads to it through our own descriptor. */
interface NamedPipe {
  readonly path: string;
  readonly buffer: Buffer;
}

/** As much as a pipe holds. */
const bufferBytes = 65_536;
const names = ['0', '1'] as const;

/** `makeNamed` makes the named pipes `0` and `1` in a folder and says whether it did. */
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
        // Called by name it would be compiled into this and again into Node's caller: a twelfth of the CPU that a flood
        // of output takes us.
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

import type { Socket } from 'node:net';
import type { Readable, Writable } from 'node:stream';

/** A small shell that runs while we run commands. When its input ends without a word, our process was killed (`kill
 * -9`, out of memory), and it ends everything that we had started. It also makes the named pipes that Node cannot
 * make. */
export interface Watchdog {
  start(): void;
  /** Makes the named pipes `0` and `1` in `folder`. Returns whether it succeeded. */
  makePipes(folder: string): Promise<boolean>;
  /** Tells it the groups whose leader has ended. It finds all others by the marker. */
  tell(groups: Iterable<number>): void;
  /** Ends it, when there is nothing left to do. The signal is sent before this returns. */
  stop(): Promise<void>;
}

/** A shell that was started with pipes for its standard input and output. */
export interface HelperShell {
  readonly stdin: Writable | null;
  readonly stdout: Readable | null;
  kill(signal: NodeJS.Signals): boolean;
  ref(): void;
  unref(): void;
  on(event: 'exit' | 'error', listener: () => void): unknown;
}

const answerMs = 2000;

/** Ends the processes that carry the marker, the groups that one of these leads, and the groups that were named. If the
 * leader of a group has ended and another process has its number, that process is a stranger. Sends TERM first, and
 * KILL after 2 s. */
const script = `
mark=$1 groups= folder=
signal() {
  found=
  for file in $(grep -lsF -- "$mark" /proc/[0-9]*/environ); do
    id=\${file#/proc/} id=\${id%/environ}
    read -r stat 2>/dev/null </proc/$id/stat || continue
    set -- "$1" \${stat##*) }
    found=1
    [ "$4" != "$id" ] || kill -s $1 -- -$id 2>/dev/null
    kill -s $1 $id 2>/dev/null
  done
  for group in $groups; do
    [ -e /proc/$group ] || { kill -s $1 -- -$group 2>/dev/null && found=1; }
  done
}
while read -r word rest; do
  case $word in
    pipes) folder=$rest; mkfifo -m 600 "$folder/0" "$folder/1" 2>/dev/null && echo made || echo failed ;;
    groups) groups=$rest ;;
  esac
done
[ "$folder" ] && rm -f "$folder/0" "$folder/1" && rmdir "$folder" 2>/dev/null
signal TERM
sleep 0.1
signal 0
tries=0
while [ "$found" ] && [ $tries -lt 20 ]; do
  sleep 0.1
  signal 0
  tries=$((tries + 1))
done
found=1 tries=0
while [ "$found" ] && [ $tries -lt 50 ]; do
  signal KILL
  sleep 0.05
  tries=$((tries + 1))
done
`;

/** `launch` starts `sh` with these arguments. */
export function createWatchdog(launch: (args: readonly string[]) => HelperShell, marker: string): Watchdog {
  let shell: HelperShell | null = null;
  let told = '';

  const say = (line: string): void => {
    shell?.stdin?.write(`${line}\n`);
  };
  const start = (): void => {
    if (shell) return;
    const started = launch(['-c', script, 'sh', marker]);
    shell = started;
    const gone = (): void => {
      if (shell === started) shell = null;
    };
    for (const event of ['exit', 'error'] as const) started.on(event, gone);
    for (const stream of [started.stdin, started.stdout]) {
      stream?.on('error', gone);
      (stream as Socket | null)?.unref();
    }
    started.unref();
    if (told !== '') say(`groups ${told}`);
  };

  return {
    start,
    async makePipes(folder) {
      start();
      if (!shell?.stdout) return false;
      const answer = firstLine(shell.stdout);
      say(`pipes ${folder}`);
      return (await answer) === 'made';
    },
    tell(groups) {
      const now = [...groups].join(' ');
      if (now === told) return;
      told = now;
      say(`groups ${told}`);
    },
    stop() {
      const stopped = shell;
      shell = null;
      told = '';
      if (!stopped) return Promise.resolve();
      return new Promise((resolve) => {
        stopped.on('exit', resolve);
        stopped.ref();
        stopped.kill('SIGKILL');
      });
    },
  };
}

/** Returns the next line that the shell prints, or null if none comes in time. */
function firstLine(out: Readable): Promise<string | null> {
  return new Promise((resolve) => {
    let text = '';
    const settle = (line: string | null): void => {
      clearTimeout(deadline);
      out.off('data', onData).off('close', onClose).pause();
      resolve(line);
    };
    const onData = (chunk: Buffer): void => {
      text += chunk.toString('latin1');
      const end = text.indexOf('\n');
      if (end >= 0) settle(text.slice(0, end));
    };
    const onClose = (): void => {
      settle(null);
    };
    const deadline = setTimeout(onClose, answerMs);
    out.on('data', onData).on('close', onClose);
  });
}

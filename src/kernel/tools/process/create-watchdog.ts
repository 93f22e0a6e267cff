import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import type { HelperShell, Watchdog } from './watchdog.js';

const answerMs = 2000;

/** Ends the processes that carry the marker, the groups that one of these leads, and the groups that were named. If the
 * leader of a `leaderless` group has ended and another process has its number, that process is a stranger. Without
 * /proc, `ps` lists the processes: what a found process has started belongs to it, because macOS hides the environment
 * of its own programs. Sends TERM first, and KILL after 2 s. */
const script = `
mark=$1=$2 running= leaderless= known= folder=
marked() {
  for file in $(grep -lsF -- "$mark" /proc/[0-9]*/environ); do
    id=\${file#/proc/} id=\${id%/environ}
    read -r stat 2>/dev/null </proc/$id/stat || continue
    set -- \${stat##*) }
    [ "$3" != "$id" ] || echo -$id
    echo $id
  done
  for id in $leaderless; do
    [ -e /proc/$id ] || echo -$id
  done
}
related() {
  ps -axwwE -o pid= -o ppid= -o pgid= -o stat= -o command= 2>/dev/null |
    awk -v mark=" $mark " -v led=" $running " -v unled=" $leaderless " -v known=" $known " -v own=$$ '
      $4 ~ /^Z/ || $3 == own { next }
      { parent[$1] = $2; group[$1] = $3; if (index($0 " ", mark)) found[$1] = 1 }
      END {
        for (id in parent) {
          name = " " group[id] " "
          if (index(led, name) || (index(unled, name) && !(group[id] in parent))) found[id] = 1
          if (index(known, " " id " ")) found[id] = 1
        }
        do {
          more = 0
          for (id in parent) if (!(id in found) && (parent[id] in found)) { found[id] = 1; more = 1 }
        } while (more)
        for (id in found) print id
      }'
}
if [ -r /proc/self/environ ]; then list=marked; else list=related; fi
signal() {
  found= left=
  known=$(echo $($list))
  for id in $known; do
    kill -s $1 -- $id 2>/dev/null && found=1
  done
  for id in $running; do
    kill -s $1 -- -$id 2>/dev/null && found=1 left="$left $id"
  done
  running=$left
}
while read -r word rest; do
  case $word in
    pipes) folder=$rest; mkfifo -m 600 "$folder/0" "$folder/1" 2>/dev/null && echo made || echo failed ;;
    running) running=$rest ;;
    leaderless) leaderless=$rest ;;
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

/** `launch` starts `sh` with these arguments; null if it cannot be started now. */
export function createWatchdog(launch: (args: readonly string[]) => HelperShell | null, marker: string): Watchdog {
  // In one word, it would look like a part of the environment of this shell, where `ps` shows both.
  const nameAndValue = marker.split(/=(.*)/s).slice(0, 2);
  let shell: HelperShell | null = null;
  let told = '';

  const say = (line: string): void => {
    shell?.stdin?.write(`${line}\n`);
  };
  const start = (): void => {
    if (shell) return;
    const started = launch(['-c', script, 'sh', ...nameAndValue]);
    if (!started) return;
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
    if (told !== '') say(told);
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
      const now = `running ${groups.running().join(' ')}\nleaderless ${groups.leaderless().join(' ')}`;
      if (now === told) return;
      told = now;
      say(told);
    },
    stop() {
      const stopped = shell;
      shell = null;
      told = '';
      if (!stopped) return Promise.resolve();
      return new Promise((resolve) => {
        // A shell that could not be started has an error in place of an end.
        for (const event of ['exit', 'error'] as const) stopped.on(event, resolve);
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
    out.on('data', onData).on('close', onClose).resume();
  });
}

import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';

/** What waits for a person, a terminal, a peer or for ever. */
export const hangingCommands: readonly string[] = [
  'cat',
  'read -r line',
  'head -n 1 < /dev/tty',
  'python3 || true',
  'node -i',
  'perl',
  'bash -i',
  'less README.md',
  'more README.md',
  'man cat',
  'git --paginate log',
  'vi README.md',
  '$EDITOR README.md',
  'ed README.md',
  'git commit',
  'git rebase -i HEAD',
  'git add -p',
  'sudo -k true',
  'su -c true nobody',
  'ssh -o BatchMode=no -o ConnectTimeout=1 127.0.0.1 true',
  'git -c core.askPass= clone http://127.0.0.1:9/x.git',
  'npm init',
  'mkfifo pipe; cat pipe',
  'mkfifo pipe2; echo x > pipe2',
  'sleep infinity',
  'tail -f /dev/null',
  'tail -f README.md',
  'top',
  'watch date',
  'yes > /dev/null',
  'cat /dev/zero > /dev/null',
  'dd if=/dev/random of=/dev/null',
  'trap "" TERM HUP INT; while :; do sleep 1; done',
  'setsid sleep 300',
  '(setsid sleep 300 &)',
  'nohup sleep 300 & disown',
  'script -qc cat /dev/null',
  'while :; do :; done',
  'wait $$; exec 3<>/dev/tcp/127.0.0.1/9',
  'select x in a b; do :; done',
  'coproc cat; wait',
];

const fixture = resolve('fixtures/security/dangerous-commands.json');
interface Row {
  readonly cmd: string;
  readonly must_not_hang?: boolean;
}

/** The samples of such commands. To be run in a sandbox alone. */
export function hangingSamples(): readonly string[] {
  return (JSON.parse(readFileSync(fixture, 'utf8')) as { readonly cases: readonly Row[] }).cases
    .filter((row) => row.must_not_hang === true)
    .map((row) => row.cmd);
}

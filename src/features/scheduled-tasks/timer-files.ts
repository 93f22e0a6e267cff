export const timerKinds = ['systemd', 'launchd', 'cron'] as const;
export type TimerKind = (typeof timerKinds)[number];

export interface TimerPlace {
  /** The command that fires what is due, absolute: program and arguments. */
  readonly argv: readonly string[];
  /** `PATH` and the other variables that the program needs. */
  readonly env: Readonly<Record<string, string>>;
  /** A file of keys, a `NAME=value` a line, which is read where it exists. */
  readonly keys: string;
}

/** Returns what makes the system fire due tasks each minute: files with where they belong, or a line. Nothing is
 * installed. */
export function timerText(kind: TimerKind, place: TimerPlace): string {
  switch (kind) {
    case 'systemd':
      return systemdUnits(place);
    case 'launchd':
      return launchAgent(place);
    case 'cron':
      return cronLine(place);
    default:
      return kind satisfies never;
  }
}

/** Starts a command with the variables of a file where there is one. Arguments: the file, then the command. */
const withKeys = 'set -a; [ ! -f "$0" ] || . "$0"; set +a; exec "$@"';

/** Source: systemd.service(5), systemd.timer(5), "Quoting" in systemd.syntax(7). */
function systemdUnits({ argv, env, keys }: TimerPlace): string {
  const variables = Object.entries(env).map(([name, value]) => `Environment=${inUnit(`${name}=${value}`)}`);
  return `# ~/.config/systemd/user/agent-tasks.service
[Unit]
Description=Tasks of agent that are due

[Service]
Type=oneshot
${variables.join('\n')}
# Keys of providers, NAME=value a line, readable by you alone (chmod 600); nothing else hands them over.
EnvironmentFile=-${keys.replaceAll('%', '%%')}
ExecStart=${argv.map((word) => inUnit(word.replaceAll('$', '$$$$'))).join(' ')}

# ~/.config/systemd/user/agent-tasks.timer
[Unit]
Description=Tasks of agent, each minute

[Timer]
OnCalendar=*:0/1
AccuracySec=1s
Persistent=true

[Install]
WantedBy=timers.target

# Then:
#   systemctl --user daemon-reload
#   systemctl --user enable --now agent-tasks.timer
#   loginctl enable-linger        (also while you are not logged in)
`;
}

function inUnit(word: string): string {
  return `"${word.replaceAll('%', '%%').replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
}

/** Source: launchd.plist(5). */
function launchAgent({ argv, env, keys }: TimerPlace): string {
  const words = ['/bin/sh', '-c', withKeys, keys, ...argv].map((word) => `    <string>${inXml(word)}</string>`);
  const variables = Object.entries(env).map(
    ([name, value]) => `    <key>${inXml(name)}</key><string>${inXml(value)}</string>`,
  );
  return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- ~/Library/LaunchAgents/agent-tasks.plist
     Keys of providers are read from ${inComment(keys)}, NAME=value a line (chmod 600).
     Then: launchctl bootstrap gui/$(id -u) ~/Library/LaunchAgents/agent-tasks.plist -->
<plist version="1.0">
<dict>
  <key>Label</key><string>agent-tasks</string>
  <key>ProgramArguments</key>
  <array>
${words.join('\n')}
  </array>
  <key>EnvironmentVariables</key>
  <dict>
${variables.join('\n')}
  </dict>
  <key>StartInterval</key><integer>60</integer>
  <key>RunAtLoad</key><true/>
</dict>
</plist>
`;
}

/** A comment of XML holds no two hyphens in a row. */
function inComment(text: string): string {
  return inXml(text).replaceAll('--', '- -');
}

function inXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** One line for `crontab -e`. cron ends a command at a bare percent sign. Source: crontab(5). */
function cronLine({ argv, env, keys }: TimerPlace): string {
  const variables = Object.entries(env).map(([name, value]) => `${name}=${inShell(value)}`);
  const words = ['/bin/sh', '-c', withKeys, keys, ...argv];
  const command = [...variables, ...words.map(inShell), '>/dev/null 2>&1'].join(' ');
  return `* * * * * ${command.replaceAll('%', '\\%')}\n`;
}

function inShell(word: string): string {
  return /^[\w@+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

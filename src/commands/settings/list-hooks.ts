import { dirname, join } from 'node:path';
import { parseConfigText, readConfigFile } from '../../config/settings-file.js';
import { type Hook, type HookFile, namedFiles, readHookFile } from '../../extensions/hooks/listed-hooks.js';
import { exit, type Settings, type Verb } from '../command.js';
import { columns, printListing } from '../line-output.js';

/** `agent hooks`, `/hooks`: the hooks of the user, and what in their file does not count. */
export const hooks: Verb = {
  line: {
    example: 'agent hooks --json',
    options: (command) => command.option('--json', 'one JSON array'),
    run: async ({ out, settings }, _args, { json }: { readonly json?: boolean }) => {
      const opened = await settings();
      const { path, file } = await read(opened);
      for (const problem of file.problems) out.error(`agent: ${path}: ${problem}\n`);
      printListing(
        out,
        json,
        file.hooks.map((hook) => row(hook, opened.cwd)),
        () => listing(path, file, opened.cwd),
      );
      return exit.done;
    },
  },
  slash: async (_argument, { screen, settings }) => {
    const { path, file } = await read(settings);
    for (const problem of file.problems) screen.notice('warn', `${path}: ${problem}`);
    screen.print(listing(path, file, settings.cwd).join('\n'));
  },
};

async function read({ config }: Settings): Promise<{ readonly path: string; readonly file: HookFile }> {
  const path = join(dirname(config.files.config), 'hooks.json');
  const content = readConfigFile(path);
  if (content.kind === 'missing') return { path, file: { hooks: [], problems: [] } };
  if (content.kind === 'unreadable') return { path, file: { hooks: [], problems: [content.reason] } };
  const parsed = await parseConfigText(content.text);
  return {
    path,
    file: parsed.kind === 'broken' ? { hooks: [], problems: [parsed.reason] } : readHookFile(parsed.value),
  };
}

function row(hook: Hook, cwd: string): Readonly<Record<string, unknown>> {
  const { event, matcher, command, args, timeoutMs, required } = hook;
  const { sha256, missing } = namedFiles(hook, cwd);
  return { event, matcher, command, args: args ?? null, timeout_s: timeoutMs / 1000, required, sha256, missing };
}

function listing(path: string, { hooks: list }: HookFile, cwd: string): readonly string[] {
  if (list.length === 0) return [`No hooks: nothing in ${path} counts. docs/extending.md says how to write them.`];
  return columns(
    list.map((hook) => {
      const { sha256, missing } = namedFiles(hook, cwd);
      const gone = missing.length === 0 ? '' : ` (missing: ${missing.join(', ')})`;
      const command = [hook.command, ...(hook.args ?? [])].join(' ');
      return [hook.event, hook.matcher === '' ? '*' : hook.matcher, sha256.slice(0, 12), `${command}${gone}`];
    }),
  );
}

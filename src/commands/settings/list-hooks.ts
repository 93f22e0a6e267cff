import { namedFiles } from '../../extensions/hooks/listed-hooks.js';
import { exit, type ListedHooks, type Verb } from '../command.js';
import { columns, printListing } from '../line-output.js';

/** `agent hooks`, `/hooks`: the hooks of the user and of the project, and what in their files does not count. */
export const hooks: Verb = {
  line: {
    example: 'agent hooks --json',
    options: (command) => command.option('--json', 'one JSON array'),
    run: async ({ out, settings, trust }, _args, { json }: { readonly json?: boolean }) => {
      const listed = await trust.hooks(await settings());
      for (const problem of listed.problems) out.error(`agent: ${problem}\n`);
      printListing(out, json, listed.hooks.map(row), () => listing(listed));
      return exit.done;
    },
  },
  slash: async (_argument, { screen, tools }) => {
    const listed = await tools.hooks();
    for (const problem of listed.problems) screen.notice('warn', problem);
    screen.print(listing(listed).join('\n'));
  },
};

type Listed = ListedHooks['hooks'][number];

function row(hook: Listed): Readonly<Record<string, unknown>> {
  const { event, matcher, command, args, timeoutMs, required, condition, background, from, counts } = hook;
  const { sha256, missing } = namedFiles(hook);
  const shown = { event, matcher, command, args: args ?? null, timeout_s: timeoutMs / 1000, required, sha256, missing };
  const more = { if: condition ?? null, background: background ?? null };
  return { ...shown, ...more, origin: from.origin, path: from.path, counts };
}

function inBackground({ background }: Listed): string {
  return background === undefined ? '' : ' (in the background)';
}

function listing({ hooks: list }: ListedHooks): readonly string[] {
  if (list.length === 0) return ['No hooks. docs/extending.md says how to write them.'];
  return columns(
    list.map((hook) => {
      const { sha256, missing } = namedFiles(hook);
      const gone = missing.length === 0 ? '' : ` (missing: ${missing.join(', ')})`;
      const aside = hook.counts ? '' : ' (not trusted, not run: agent config trust asks about it)';
      const command = [hook.command, ...(hook.args ?? [])].join(' ');
      const names = hook.matcher === '' ? '*' : hook.matcher;
      const matcher = `${names}${hook.condition === undefined ? '' : ` if ${hook.condition}`}`;
      return [
        hook.event,
        matcher,
        hook.from.origin,
        sha256.slice(0, 12),
        `${command}${inBackground(hook)}${gone}${aside}`,
      ];
    }),
  );
}

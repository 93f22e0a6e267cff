import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Workbench } from '../../cli/session/assemble.js';
import type { SessionDesk } from '../../cli/repl/current-session.js';
import type { Command, CommandContext } from '../../ui/command.js';
import { toHtml } from './export-html.js';
import { createRedactor } from './export-session.js';
import { toMarkdown } from './export-text.js';
import { type ExportedSession, toJsonl } from './session-lines.js';

/** `/export`, `/doctor`. */
export function recordCommands(bench: Workbench, desk: SessionDesk): readonly Command[] {
  return [
    {
      name: 'export',
      description: 'write this session to a file: .md, .html or .jsonl',
      argument: '[file]',
      run: async (argument, context) => {
        await exportTo(argument, bench, desk, context);
      },
    },
    {
      name: 'doctor',
      description: 'check this machine: node, storage, keys, servers, sandbox',
      run: async (_argument, context) => {
        const { doctorAction } = await import('../settings/doctor.js');
        let text = '';
        await doctorAction(bench.options, {
          write: (part) => {
            text += part;
          },
        });
        await context.page('Doctor', text.trimEnd());
      },
    },
  ];
}

/** The same as `agent sessions export`, keys masked. A file that is there is not written over. */
async function exportTo(
  argument: string,
  { setup }: Workbench,
  desk: SessionDesk,
  context: CommandContext,
): Promise<void> {
  const { row, session } = desk.current();
  const events = session.events();
  if (events.length === 0) {
    context.notice('info', 'There is nothing to export yet.');
    return;
  }
  const name = argument === '' ? `session-${row.id.slice(0, 13)}.md` : argument;
  const redactor = createRedactor(setup.env, setup.secrets);
  const exported: ExportedSession = {
    row: { ...row, title: row.title === null ? null : redactor.text(row.title) },
    events: events.map((event) => redactor.event(event)),
  };
  const format = /\.jsonl$/i.test(name) ? toJsonl : /\.html?$/i.test(name) ? toHtml : toMarkdown;
  const text = await format(exported);
  try {
    writeFileSync(resolve(setup.cwd, name), text, { mode: 0o600, flag: 'wx' });
  } catch (error) {
    context.notice('error', `${name} was not written: ${error instanceof Error ? error.message : String(error)}`);
    return;
  }
  const masked = redactor.count();
  context.notice(
    'info',
    `This session is in ${name}.${masked > 0 ? ` ${masked} value${masked === 1 ? '' : 's'} that looked like keys ${masked === 1 ? 'is' : 'are'} masked in it.` : ''}`,
  );
}

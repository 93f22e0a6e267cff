import { knownEvent } from '../../core/event.js';
import { didYouMean } from '../../core/nearest.js';
import type { ApprovalMode } from '../../core/policy.js';
import type { Command, CommandContext } from '../../ui/command.js';
import { configRows, originText } from '../commands/config-rows.js';
import { columns } from '../print.js';
import type { SessionDesk } from './session-desk.js';
import type { Workbench } from '../open/workbench.js';

const modes: Readonly<Record<ApprovalMode, string>> = {
  always: 'every call waits for a yes',
  mutating: 'calls that write or run wait for a yes',
  dangerous: 'dangerous calls wait for a yes',
  never: 'nothing waits but secret files and protected paths',
};

/** `/approval`, `/config`, `/diff`. */
export function settingsCommands(bench: Workbench, desk: SessionDesk): readonly Command[] {
  return [
    { name: 'approval', description: 'which calls wait for a yes', argument: `[${Object.keys(modes).join('|')}]`, run: (argument, context) => changeApproval(bench, argument.trim(), context) },
    { name: 'config', description: 'every setting and where it came from', run: (_argument, context) => {
      const rows = configRows(bench.setup.loaded).map((row) => [row.key, row.value === null ? '-' : JSON.stringify(row.value), `(${originText(row)})`]);
      return context.page('Settings', columns(rows).join('\n'));
    } },
    { name: 'diff', description: 'what the calls of this session changed in files', run: (_argument, context) => {
      const diffs = desk.current().session.events().flatMap((raw) => {
        const event = knownEvent(raw);
        return event?.kind === 'tool_result' && event.data.diff ? [`[${event.seq}] ${event.content}\n${event.data.diff}`] : [];
      });
      if (diffs.length > 0) return context.page('Changes', diffs.join('\n'));
      context.notice('info', 'No file was written or edited in this session.');
      return Promise.resolve();
    } },
  ];
}

async function changeApproval(bench: Workbench, asked: string, context: CommandContext): Promise<void> {
  const names = Object.keys(modes) as ApprovalMode[];
  const chosen = asked === ''
    ? await context.pick({ title: `Approval (now ${bench.policy.mode()})`, items: names.map((name) => ({ label: name, detail: modes[name], value: name })), current: bench.policy.mode() })
    : names.find((name) => name === asked) ?? null;
  if (chosen === null) {
    if (asked !== '') context.notice('warn', `There is no approval mode ${asked}. ${didYouMean(asked, names)} Known: ${names.join(', ')}.`);
    return;
  }
  bench.policy.switchTo(chosen);
  context.refresh();
  context.notice('info', `From now on ${modes[chosen]}.`);
}

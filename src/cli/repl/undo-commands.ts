import { counted } from '../../tools/outcome.js';
import type { Command, CommandContext } from '../../ui/command.js';
import type { SessionDesk } from './session-desk.js';
import { act, atPresent } from '../undo/undo-act.js';
import { chooseReverts } from '../undo/undo-choice.js';
import { listReverts } from '../undo/undo-listing.js';

/** `/undo` and `/redo`: what calls did to files, listed first, then taken back or done again. */
export function undoCommands(desk: SessionDesk): readonly Command[] {
  return (['undo', 'redo'] as const).map((kind) => ({
    name: kind,
    argument: '[event or all]',
    description:
      kind === 'undo'
        ? 'take back what the last call, or the one of an event, did to files'
        : 'do again to files what was undone last',
    run: (argument, context) => revert(kind, argument.trim(), desk, context),
  }));
}

async function revert(
  kind: 'undo' | 'redo',
  argument: string,
  desk: SessionDesk,
  context: CommandContext,
): Promise<void> {
  const { session, row } = desk.current();
  if (session.busy()) {
    context.notice('warn', `A turn is running: interrupt it (Esc) before /${kind}.`);
    return;
  }
  const files = atPresent(session, row.moves);
  const choice = chooseReverts(files.events(), kind, argument);
  if ('problem' in choice) {
    context.notice('info', choice.problem);
    return;
  }
  const listing = await listReverts(files, choice.reverts, choice.passed);
  context.print(listing.lines.join('\n'));
  if (listing.files === 0) {
    context.notice('info', 'Nothing was touched.');
    return;
  }
  const verb = kind === 'undo' ? 'Undo' : 'Redo';
  const items = [
    { label: `${verb} the changes in ${counted(listing.files, 'file')}`, value: true },
    { label: 'Leave everything as it is', value: false },
  ];
  const yes = await context.pick({ title: `${verb} what is listed above`, items, confirms: true });
  if (yes !== true || session.busy()) {
    context.notice('info', 'Nothing was touched.');
    return;
  }
  let done = 0;
  for (const item of choice.reverts) {
    const result = await act(files, item);
    done += result.done.length;
    for (const { path, reason } of result.skipped) context.notice('warn', `Left ${path}: ${reason}`);
  }
  const back = kind === 'undo' ? '/redo' : '/undo';
  context.notice('info', `${counted(done, 'file')} ${kind === 'undo' ? 'undone' : 'redone'}; ${back} takes that back.`);
}

import type { ApprovalMode } from '../../core/policy.js';
import { didYouMean } from '../../core/text.js';
import type { Repl, Verb } from '../command.js';
import { parseKeep, keepOrSayHow } from './keep-setting.js';

const modes: Readonly<Record<ApprovalMode, string>> = {
  always: 'every call waits for a yes',
  mutating: 'calls that write or run wait for a yes',
  dangerous: 'dangerous calls wait for a yes',
  never: 'nothing waits but secret files and protected paths',
};

/** `/approval`: which calls wait for a yes, from now on in this run, and with `--keep` in the next. */
export const approvalMode: Verb = { slash: changeApproval };

async function changeApproval(argument: string, repl: Repl): Promise<void> {
  const { approval, screen } = repl;
  const { rest: asked, keeps } = parseKeep(argument);
  const names = Object.keys(modes) as ApprovalMode[];
  const chosen =
    asked === ''
      ? await screen.pick({
          title: `Approval (now ${approval.mode()})`,
          items: names.map((name) => ({ label: name, detail: modes[name], value: name })),
          current: approval.mode(),
        })
      : (names.find((name) => name === asked) ?? null);
  if (chosen === null) {
    if (asked !== '')
      screen.notice(
        'warn',
        `There is no approval mode ${asked}. ${didYouMean(asked, names)} Known: ${names.join(', ')}.`,
      );
    return;
  }
  approval.switchTo(chosen);
  screen.refresh();
  screen.notice('info', `From now on ${modes[chosen]}. ${await keepOrSayHow(repl, 'approval', chosen, keeps)}`);
}

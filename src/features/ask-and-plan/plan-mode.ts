import { hasPlan } from '../../kernel/core/policy.js';
import { endPlanMode, planAnswers } from './put-questions.js';
import type { PickItem } from '../../kernel/console/slash-command.js';
import type { Repl, CommandHandler } from '../../kernel/console/command.js';

/** `/plan`: only calls that read are run until the user lets the plan be carried out. The plan is the model's answer;
 * no answer to a question, and no other message, ends plan mode. */
export const planMode: CommandHandler = {
  slash: async (argument, repl) => {
    if (argument === 'off') leave(repl, 'off');
    else if (argument !== '') begin(argument, repl);
    else if (repl.approval.planning()) await ask(repl);
    else begin('', repl);
  },
};

function begin(request: string, { approval, screen }: Repl): void {
  if (!approval.planning()) {
    approval.plan(true);
    screen.refresh();
    screen.notice('info', 'Plan mode: read-only. /plan when you want to act on the plan.');
  }
  if (request !== '') screen.send(request);
}

async function ask(repl: Repl): Promise<void> {
  const isThere = hasPlan(repl.sessions.current().session.recent());
  const goes: readonly PickItem<End | 'stay'>[] = [
    { label: planAnswers.go, detail: 'only dangerous calls ask', value: 'go' },
    { label: planAnswers.ask, detail: 'every edit and command asks', value: 'ask' },
  ];
  const chosen = await repl.screen.pick<End | 'stay'>({
    title: isThere ? 'Run this plan?' : 'There is no plan yet',
    items: [
      ...(isThere ? goes : []),
      { label: planAnswers.keep, value: 'stay' },
      { label: isThere ? 'Leave plan mode without running it' : 'Leave plan mode', value: 'quit' },
    ],
    current: 'stay',
  });
  if (chosen !== null && chosen !== 'stay') leave(repl, chosen);
}

/** The end of plan mode: the plan is run and edits are accepted, or each of them asks; it is run in the approval mode
 * from before (`off`); or nothing is sent. */
type End = 'go' | 'ask' | 'off' | 'quit';

const goAhead = 'Go ahead with the plan.';

function leave({ approval, sessions, screen }: Repl, how: End): void {
  if (!approval.planning()) {
    screen.notice('info', 'Plan mode is already off.');
    return;
  }
  const goes = how !== 'quit' && hasPlan(sessions.current().session.recent());
  if (how === 'quit' || how === 'off') approval.plan(false);
  else endPlanMode(approval, how);
  screen.refresh();
  screen.notice('info', `Plan mode is off${goes ? '' : '; nothing was sent'}. Approval: ${approval.mode()}.`);
  if (goes) screen.send(goAhead);
}

import { hasPlan } from '../../kernel/core/policy.js';
import type { PickItem } from '../../kernel/console/slash-command.js';
import type { Repl, CommandHandler } from '../../kernel/console/command.js';

/** `/plan`: only calls that read are run until the user lets the plan be carried out. The plan is the model's answer;
 * no answer to a question, and no other message, ends plan mode. */
export const planMode: CommandHandler = {
  slash: async (argument, repl) => {
    if (argument === 'off') leave(repl, 'go');
    else if (argument !== '') begin(argument, repl);
    else if (repl.approval.planning()) await ask(repl);
    else begin('', repl);
  },
};

function begin(request: string, { approval, screen }: Repl): void {
  if (!approval.planning()) {
    approval.plan(true);
    screen.refresh();
    screen.notice('info', 'Plan mode: only calls that read are run. /plan decides what becomes of the plan.');
  }
  if (request !== '') screen.send(request);
}

async function ask(repl: Repl): Promise<void> {
  const isThere = hasPlan(repl.sessions.current().session.events());
  const goes: readonly PickItem<End | 'stay'>[] = [
    { label: 'Go ahead', value: 'go' },
    { label: 'Go ahead, and ask about every change', value: 'ask' },
  ];
  const chosen = await repl.screen.pick<End | 'stay'>({
    title: isThere ? 'Carry the plan out?' : 'There is no plan yet',
    items: [
      ...(isThere ? goes : []),
      { label: 'Keep planning', value: 'stay' },
      { label: 'Leave plan mode', detail: 'nothing is sent', value: 'quit' },
    ],
    current: 'stay',
  });
  if (chosen !== null && chosen !== 'stay') leave(repl, chosen);
}

/** The ways to leave plan mode: carry out the plan, carry it out with a prompt before every change, or send nothing. */
type End = 'go' | 'ask' | 'quit';

const goAhead = 'Go ahead with the plan.';

function leave({ approval, sessions, screen }: Repl, how: End): void {
  if (!approval.planning()) {
    screen.notice('info', 'Plan mode is off already.');
    return;
  }
  const goes = how !== 'quit' && hasPlan(sessions.current().session.events());
  approval.plan(false);
  if (how === 'ask') approval.switchTo('mutating');
  screen.refresh();
  screen.notice('info', `Plan mode is off${goes ? '' : '; nothing was sent'}. Approval: ${approval.mode()}.`);
  if (goes) screen.send(goAhead);
}

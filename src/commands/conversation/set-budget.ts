import { money, spentUsd } from '../../agent/budget.js';
import type { Verb } from '../command.js';

/** `/budget`: what may be spent, shown or set. It counts for the sessions of this run. */
export const budget: Verb = {
  slash: async (argument, { screen, sessions, spending }) => {
    const { session } = sessions.current();
    const spent = spentUsd(session.events());
    const before = spending.limitUsd();
    const asked = askedLimit(argument.trim(), before ?? spent);
    if (asked === undefined)
      screen.notice('error', 'Give an amount in US dollars: /budget 5, /budget +2, /budget off.');
    else if (asked !== 'as it is') spending.set(asked);
    const allowed = spending.budget(session.ref());
    if (allowed !== null && 'code' in allowed) {
      spending.set(before);
      screen.notice('error', `${allowed.message.replace('--max-cost', '/budget')}. ${allowed.hint ?? ''}`);
    } else if (asked !== undefined) screen.notice('info', spendingLine(spent, spending.limitUsd()));
  },
};

/** The limit that `text` asks for, null for none; undefined for what is no amount. */
function askedLimit(text: string, from: number): number | null | 'as it is' | undefined {
  if (text === '') return 'as it is';
  if (text === 'off') return null;
  const [, plus, amount] = /^(\+?)\$?(\d+(?:\.\d+)?|\.\d+)$/.exec(text) ?? [];
  return amount === undefined ? undefined : (plus === '+' ? from : 0) + Number(amount);
}

function spendingLine(spent: number, limit: number | null): string {
  if (limit === null) return `${money(spent)} is spent, and there is no limit. /budget 5 sets one.`;
  const left = limit - spent;
  return left > 0
    ? `${money(spent)} of ${money(limit)} is spent; ${money(left)} is left.`
    : `${money(spent)} is spent, and the limit is ${money(limit)}: nothing more is sent.`;
}

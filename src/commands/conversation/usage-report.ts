import { addUsage, money, noUsage, spentUsd } from '../../agent/budget.js';
import { utf8Bytes } from '../../core/text.js';
import { findModel } from '../../providers/models.js';
import type { Repl, Verb } from '../command.js';

/** `/cost`: tokens and money of this session. */
export const cost: Verb = {
  slash: async (_argument, { screen, sessions }) => {
    const events = sessions.current().session.events();
    const sum = events.reduce(addUsage, noUsage);
    const requests = events.filter((event) => event.kind === 'usage').length;
    const spent = sum.cost_usd === null ? 'unknown' : `$${sum.cost_usd.toFixed(4)}`;
    const row = [requests, sum.input_tokens, sum.cache_read_tokens, sum.cache_write_tokens, sum.output_tokens, spent];
    screen.printMarkdown(
      [
        `| requests | input | cache read | cache write | output | cost |`,
        '| ---: | ---: | ---: | ---: | ---: | ---: |',
        `| ${row.join(' | ')} |`,
      ].join('\n'),
    );
  },
};

/** `/context`: what the next request is made of, by estimated size. */
export const context: Verb = {
  slash: async (_argument, { screen, sessions, settings }: Repl) => {
    const { session } = sessions.current();
    const conversation = session.record.conversation();
    const messages = conversation.messages.map((message) => utf8Bytes(JSON.stringify(message)));
    const parts = [
      ['system prompt', utf8Bytes(conversation.system)],
      ['tools', utf8Bytes(JSON.stringify(conversation.tools))],
      ['messages', messages.reduce((sum, bytes) => sum + bytes, 0)],
    ] as const;
    const total = parts.reduce((sum, [, bytes]) => sum + bytes, 0);
    const { provider, model } = session.ref();
    const window = findModel(provider, model, settings.config.provider.models)?.contextWindow ?? null;
    const share = (bytes: number): string => (window === null ? '' : `${((bytes / 4 / window) * 100).toFixed(1)} %`);
    screen.printMarkdown(
      [
        `| part | tokens (bytes/4) | of the window |`,
        '| --- | ---: | ---: |',
        ...[...parts, ['all', total] as const].map(
          ([name, bytes]) => `| ${name} | ${Math.ceil(bytes / 4)} | ${share(bytes)} |`,
        ),
        '',
        window === null ? `The context window of ${model} is not known.` : `${model} has a window of ${window} tokens.`,
      ].join('\n'),
    );
  },
};

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

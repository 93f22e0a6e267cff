import { money, spentUsd } from '../../agent/budget.js';
import { addUsage, noUsage } from '../../cli/stream-json.js';
import type { Workbench } from '../../cli/session/assemble.js';
import type { SessionDesk } from '../../cli/repl/current-session.js';
import { utf8Bytes } from '../../core/text.js';
import { findModel } from '../../providers/models.js';
import type { Command } from '../../ui/command.js';

/** `/tools`: the catalogue. */
export function toolsCommand(bench: Workbench): Command {
  return {
    name: 'tools',
    description: 'the tools the model has',
    run: (_argument, context) => {
      const rows = bench.registry
        .list()
        .map((tool) => `| \`${tool.name}\` | ${tool.effect} | ${tool.description.replaceAll('|', '\\|')} |`);
      context.printMarkdown(
        rows.length === 0
          ? 'No tools in this session.'
          : ['| tool | effect | what it does |', '| --- | --- | --- |', ...rows].join('\n'),
      );
      return Promise.resolve();
    },
  };
}

/** `/cost`: tokens and money of this session. */
export function costCommand(desk: SessionDesk): Command {
  return {
    name: 'cost',
    description: 'tokens and cost of this session',
    run: (_argument, context) => {
      const events = desk.current().session.events();
      const sum = events.reduce(addUsage, noUsage);
      const requests = events.filter((event) => event.kind === 'usage').length;
      context.printMarkdown(
        [
          `| requests | input | cache read | cache write | output | cost |`,
          '| ---: | ---: | ---: | ---: | ---: | ---: |',
          `| ${requests} | ${sum.input_tokens} | ${sum.cache_read_tokens} | ${sum.cache_write_tokens} | ${sum.output_tokens} | ${sum.cost_usd === null ? 'unknown' : `$${sum.cost_usd.toFixed(4)}`} |`,
        ].join('\n'),
      );
      return Promise.resolve();
    },
  };
}

/** `/budget`: what may be spent, shown or set. It counts for the sessions of this run. */
export function budgetCommand({ spend }: Workbench, desk: SessionDesk): Command {
  return {
    name: 'budget',
    description: 'what this session may cost',
    argument: '[+usd, usd or off]',
    run: (argument, context) => {
      const { session } = desk.current();
      const spent = spentUsd(session.events());
      const before = spend.limitUsd();
      const asked = askedLimit(argument.trim(), before ?? spent);
      if (asked === undefined)
        context.notice('error', 'Give an amount in US dollars: /budget 5, /budget +2, /budget off.');
      else if (asked !== 'as it is') spend.set(asked);
      const budget = spend.budget(session.ref());
      if (budget !== null && 'code' in budget) {
        spend.set(before);
        context.notice('error', `${budget.message.replace('--max-cost', '/budget')}. ${budget.hint ?? ''}`);
      } else if (asked !== undefined) context.notice('info', spendingLine(spent, spend.limitUsd()));
      return Promise.resolve();
    },
  };
}

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

/** `/context`: what the next request is made of, by estimated size. */
export function contextCommand(bench: Workbench, desk: SessionDesk): Command {
  return {
    name: 'context',
    description: 'what the next request is made of',
    run: (_argument, context) => {
      const { session } = desk.current();
      const conversation = session.record.conversation();
      const messages = conversation.messages.map((message) => utf8Bytes(JSON.stringify(message)));
      const parts = [
        ['system prompt', utf8Bytes(conversation.system)],
        ['tools', utf8Bytes(JSON.stringify(conversation.tools))],
        ['messages', messages.reduce((sum, bytes) => sum + bytes, 0)],
      ] as const;
      const total = parts.reduce((sum, [, bytes]) => sum + bytes, 0);
      const { provider, model } = session.ref();
      const window = findModel(provider, model, bench.setup.config.provider.models)?.contextWindow ?? null;
      const share = (bytes: number): string => (window === null ? '' : `${((bytes / 4 / window) * 100).toFixed(1)} %`);
      context.printMarkdown(
        [
          `| part | tokens (bytes/4) | of the window |`,
          '| --- | ---: | ---: |',
          ...[...parts, ['all', total] as const].map(
            ([name, bytes]) => `| ${name} | ${Math.ceil(bytes / 4)} | ${share(bytes)} |`,
          ),
          '',
          window === null
            ? `The context window of ${model} is not known.`
            : `${model} has a window of ${window} tokens.`,
        ].join('\n'),
      );
      return Promise.resolve();
    },
  };
}

import { addUsage, noUsage } from '../../agent/budget.js';
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
    screen.printMarkdown(
      [
        `| requests | input | cache read | cache write | output | cost |`,
        '| ---: | ---: | ---: | ---: | ---: | ---: |',
        `| ${requests} | ${sum.input_tokens} | ${sum.cache_read_tokens} | ${sum.cache_write_tokens} | ${sum.output_tokens} | ${spent} |`,
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

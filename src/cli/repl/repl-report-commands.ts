import { utf8Bytes } from '../../core/text.js';
import type { Command } from '../../ui/command.js';
import { findModel } from '../../providers/models.js';
import type { SessionDesk } from './session-desk.js';
import { addUsage, noUsage } from '../headless/usage-sum.js';
import type { Workbench } from '../open/workbench.js';

/** `/tools`: the catalogue. */
export function toolsCommand(bench: Workbench): Command {
  return {
    name: 'tools', description: 'the tools the model has',
    run: (_argument, context) => {
      const rows = bench.registry.list().map((tool) => `| \`${tool.name}\` | ${tool.effect} | ${tool.description.replaceAll('|', '\\|')} |`);
      context.printMarkdown(rows.length === 0 ? 'No tools in this session.' : ['| tool | effect | what it does |', '| --- | --- | --- |', ...rows].join('\n'));
      return Promise.resolve();
    },
  };
}

/** `/cost`: tokens and money of this session. */
export function costCommand(desk: SessionDesk): Command {
  return {
    name: 'cost', description: 'tokens and cost of this session',
    run: (_argument, context) => {
      const events = desk.current().session.events();
      const sum = events.reduce(addUsage, noUsage);
      const requests = events.filter((event) => event.kind === 'usage').length;
      context.printMarkdown([
        `| requests | input | cache read | cache write | output | cost |`, '| ---: | ---: | ---: | ---: | ---: | ---: |',
        `| ${requests} | ${sum.input_tokens} | ${sum.cache_read_tokens} | ${sum.cache_write_tokens} | ${sum.output_tokens} | ${sum.cost_usd === null ? 'unknown' : `$${sum.cost_usd.toFixed(4)}`} |`,
      ].join('\n'));
      return Promise.resolve();
    },
  };
}

/** `/context`: what the next request is made of, by estimated size. */
export function contextCommand(bench: Workbench, desk: SessionDesk): Command {
  return {
    name: 'context', description: 'what the next request is made of',
    run: (_argument, context) => {
      const { session } = desk.current();
      const conversation = session.conversation();
      const messages = conversation.messages.map((message) => utf8Bytes(JSON.stringify(message)));
      const parts = [
        ['system prompt', utf8Bytes(conversation.system)], ['tools', utf8Bytes(JSON.stringify(conversation.tools))], ['messages', messages.reduce((sum, bytes) => sum + bytes, 0)],
      ] as const;
      const total = parts.reduce((sum, [, bytes]) => sum + bytes, 0);
      const { provider, model } = session.ref();
      const window = findModel(provider, model, bench.setup.config.provider.models)?.contextWindow ?? null;
      const share = (bytes: number): string => (window === null ? '' : `${((bytes / 4 / window) * 100).toFixed(1)} %`);
      context.printMarkdown([
        `| part | tokens (bytes/4) | of the window |`, '| --- | ---: | ---: |',
        ...[...parts, ['all', total] as const].map(([name, bytes]) => `| ${name} | ${Math.ceil(bytes / 4)} | ${share(bytes)} |`),
        '', window === null ? `The context window of ${model} is not known.` : `${model} has a window of ${window} tokens.`,
      ].join('\n'));
      return Promise.resolve();
    },
  };
}

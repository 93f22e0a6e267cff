import { todoName, todoNow, todoStates } from '../../kernel/core/projection.js';
import { type DefinedTool, defineTool, succeeded } from '../../kernel/tools/define-tool.js';

const mostItems = 50;
const longestText = 300;

/** `todo`: the list that the model keeps of what it does. Each call gives the whole of it, and the log is where it is
 * kept: a session that was resumed, compacted or rewound has its own. */
export function todoTools(): readonly DefinedTool[] {
  return [
    defineTool({
      name: todoName,
      effect: 'read',
      otherNames: ['TodoWrite'],
      description: 'Keep a list of the steps of a longer task. Send the whole list each time; one item is active.',
      schema: {
        type: 'object',
        properties: {
          items: {
            type: 'array',
            items: {
              type: 'object',
              properties: { text: { type: 'string' }, status: { enum: todoStates } },
              required: ['text', 'status'],
              additionalProperties: false,
            },
          },
        },
        required: ['items'],
        additionalProperties: false,
      },
      describe: ({ items }) => `todo(${items.length === 1 ? '1 item' : `${items.length} items`})`,
      check({ items }) {
        if (items.length > mostItems)
          return { argument: 'items', problem: `has ${items.length} items`, expected: `at most ${mostItems}` };
        const at = items.findIndex(({ text }) => text.trim() === '' || text.length > longestText);
        return at < 0
          ? null
          : { argument: `items/${at}/text`, problem: 'blank or too long', expected: `1 to ${longestText} characters` };
      },
      judge: () => ({ risk: 'read-only', reasons: [] }),
      run: ({ items }) => {
        const now = todoNow(items);
        const summary = now === '' ? `all of ${items.length} done` : now;
        return Promise.resolve(succeeded(summary, { output: items.length === 0 ? 'empty' : 'kept' }));
      },
    }),
  ];
}

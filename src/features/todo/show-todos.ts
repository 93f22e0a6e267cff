import { todoLines, todoOf } from '../../kernel/core/projection.js';
import { sanitize } from '../../kernel/core/sanitize.js';
import type { CommandHandler } from '../../kernel/console/command.js';

/** `/todos`: the list of steps as the model gave it last. */
export const showTodos: CommandHandler = {
  slash: (_argument, { screen, sessions }) => {
    const items = todoOf(sessions.current().session.recent());
    screen.print(items.length === 0 ? 'The todo list is empty.' : sanitize(todoLines(items).join('\n')));
    return Promise.resolve();
  },
};

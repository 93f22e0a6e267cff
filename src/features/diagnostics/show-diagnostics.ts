import { largestOf } from '../../kernel/core/lists.js';
import type { CommandHandler } from '../../kernel/console/command.js';
import { counted } from '../../kernel/tools/define-tool.js';
import { diagnosticsPart, type ServerState } from './diagnostics-parts.js';

/** `/diagnostics`: the language servers that check edits, and what they do now. */
export const showDiagnostics: CommandHandler = {
  slash: async (_argument, repl) => {
    const diagnostics = repl.parts.find(diagnosticsPart);
    if (!diagnostics?.isOn) {
      repl.screen.notice('info', 'Edits are not checked: tools.diagnostics is false.');
      return;
    }
    const states = await diagnostics.states();
    const width = largestOf(
      states.map(({ name }) => name.length),
      0,
    );
    repl.screen.print(states.map((state) => `${state.name.padEnd(width)}  ${stateText(state)}`).join('\n'));
  },
};

function stateText({ state, ends, install, file, openFiles = 0, problem = '' }: ServerState): string {
  switch (state) {
    case 'running':
      return `running, ${counted(openFiles, 'file')} open (${file ?? ''})`;
    case 'waiting':
      return `starts with the first edit of ${ends.slice(0, 3).join(', ')} (${file ?? ''})`;
    case 'stopped':
      return `not running: ${problem}`;
    case 'missing':
      return `not found; to install it: ${install}`;
    default:
      return state satisfies never;
  }
}

import { fishScript } from './completion-fish.js';
import { bashScript, zshScript } from './completion-posix.js';
import type { CompletionCommand } from './completion-spec.js';

export type CompletionShell = 'bash' | 'zsh' | 'fish';

export function isCompletionShell(text: string): text is CompletionShell {
  return text === 'bash' || text === 'zsh' || text === 'fish';
}

/** The completion script of a command line for one shell. It starts no program: everything it offers is written in
 * it. */
export function completionScript(shell: CompletionShell, spec: CompletionCommand): string {
  switch (shell) {
    case 'bash':
      return bashScript(spec);
    case 'zsh':
      return zshScript(spec);
    case 'fish':
      return fishScript(spec);
    default:
      return shell satisfies never;
  }
}

import type { ReplHost, ReplPart } from '../../kernel/console/feature.js';
import { promptStash, type PromptStash } from '../../kernel/console/prompt-stash-port.js';
import { directoryId } from '../../kernel/disk/directory-id.js';
import { projectRoot } from '../../kernel/config/project.js';
import { stashTableSet } from './stash-tables.js';

type Host = Pick<ReplHost, 'tables' | 'parts'> & {
  readonly settings: Pick<ReplHost['settings'], 'cwd' | 'guard' | 'log'>;
};

/** Opens the stash of a project for a REPL, and says at the start if prompts wait in it. */
export function openStash({ tables, parts, settings }: Host): ReplPart {
  const root = projectRoot(settings);
  const project = directoryId(root) ?? root;
  parts.add(promptStash, createStash({ tables, settings }, project));
  let counting = Promise.resolve();
  const count = async (notice: (message: string) => void): Promise<void> => {
    try {
      const waiting = await (await tables(stashTableSet)).count(project);
      if (waiting > 0)
        notice(
          waiting === 1
            ? 'A stashed prompt waits in this project.'
            : `${waiting} stashed prompts wait in this project.`,
        );
    } catch (error) {
      settings.log({ at: 'stash', message: 'stashed prompts could not be counted', error: String(error) });
    }
  };
  return {
    start: (screen) => {
      counting = count((message) => {
        screen.notice('info', message);
      });
    },
    close: () => counting,
  };
}

/** Secrets are masked on the disk. The terminal that stashed a prompt gets it back as it was typed. */
function createStash({ tables, settings: { guard } }: Omit<Host, 'parts'>, project: string): PromptStash {
  const typed = new Map<number, string>();
  return {
    push: async (text) => {
      const { id, count } = await (await tables(stashTableSet)).push(project, guard.text(text));
      typed.set(id, text);
      return count;
    },
    list: async () => {
      const prompts = await (await tables(stashTableSet)).list(project);
      return prompts.map((prompt) => ({ ...prompt, text: typed.get(prompt.id) ?? prompt.text }));
    },
    remove: async (id) => {
      typed.delete(id);
      return await (await tables(stashTableSet)).remove(id);
    },
  };
}

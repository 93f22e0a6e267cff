import type { SecretGuard } from '../../kernel/core/secrets/guard.js';
import { type SecretSource, exportGuard } from '../../kernel/secrets/known-secrets.js';
import type { Notes } from './notes.js';

/** Wraps notes: one that holds a secret is refused, whatever the settings say about masking, and so is one with the
 * placeholder of a secret, which says nothing in another session. */
export function guardedNotes(notes: Notes, { env, secrets }: Pick<SecretSource, 'env' | 'secrets'>): Notes {
  let made: SecretGuard | null = null; // with the first note that is kept
  const holdsSecret = (texts: readonly string[]): boolean => {
    const guard = (made ??= exportGuard(env, secrets, ''));
    return [...texts, texts.join(' ')].some((text) => /«secret:/.test(text) || guard.text(text) !== text);
  };
  return {
    ...notes,
    save: async (draft) =>
      holdsSecret([draft.content, ...draft.tags]) ? { saved: false, why: 'secret' } : await notes.save(draft),
    change: async (id, change) =>
      holdsSecret([change.content ?? '', ...(change.tags ?? [])])
        ? { saved: false, why: 'secret' }
        : await notes.change(id, change),
  };
}

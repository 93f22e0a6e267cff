import type { Fault } from '../core/provider.js';
import { withoutEnd } from '../core/text.js';
import { tokensOf } from './budget.js';
import type { TurnDeps } from './dependencies.js';

/** The largest share of a context window that a request for another model may take by the estimate. */
const largestShare = 0.9;

/** Asks the model of a role, and the model in use where the settings name none, where the request does not fit into the
 * window of that model, and where it sends no answer. `content`: what the request is made of. */
export async function askForRole<T extends { readonly fault: Fault | null }>(
  d: TurnDeps,
  role: 'compaction' | 'title',
  content: unknown,
  ask: (d: TurnDeps) => Promise<T>,
): Promise<T> {
  const other = (await d.models.forRole?.(role, d.ownModel())) ?? null;
  if (other === null) return await ask(d);
  const name = `${other.ref.provider}/${other.ref.model}`;
  const window = d.models.contextWindow?.(other.ref) ?? null;
  if (window !== null && tokensOf(content) > window * largestShare) {
    tell(d, `${name} (models.roles.${role}) has a window of ${window} tokens, which is too small for this request.`);
    return await ask(d);
  }
  const answer = await ask({ ...d, model: () => other });
  if (answer.fault === null) return answer;
  tell(d, `${name} (models.roles.${role}) sent no answer: ${withoutEnd(answer.fault.message, '. \t\r\n')}.`);
  return await ask(d);
}

function tell(d: TurnDeps, problem: string): void {
  const { provider, model } = d.model().ref;
  const message = `${problem} ${provider}/${model} is asked instead.`;
  d.emit({ type: 'notice', level: 'info', code: 'model_role', message });
}

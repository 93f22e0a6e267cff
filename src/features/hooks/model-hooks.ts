import type { HookScene } from '../../kernel/core/hooks.js';
import { isRecord, parseJson } from '../../kernel/core/json.js';
import type { HookResult } from './hook-answers.js';
import type { Hook } from './listed-hooks.js';

/** Asks for an answer that can be read. Source: code.claude.com/docs/en/hooks, "Prompt-based hooks", read 2026-11. */
const form =
  'Answer with one JSON object and nothing else: {"ok": true} if the action may continue, or ' +
  '{"ok": false, "reason": "why not, and what to do instead"}.';

const maxInput = 50_000;

/** Asks the model, or a sub-agent, what a hook says; the input of the hook replaces `$ARGUMENTS`. A no counts as exit
 * code 2 of a program. */
export async function askModelHook(
  { type, command: prompt, timeoutMs }: Pick<Hook, 'type' | 'command' | 'timeoutMs'>,
  input: string,
  { askModel, askAgent }: Pick<HookScene, 'askModel' | 'askAgent'>,
  signal: AbortSignal,
): Promise<HookResult> {
  const ask = type === 'agent' ? askAgent : askModel;
  if (!ask) return failure('no model can be asked here');
  const given = input.slice(0, maxInput).toWellFormed();
  const question = prompt.includes('$ARGUMENTS')
    ? prompt.replaceAll('$ARGUMENTS', () => given)
    : `${prompt}\n\n${given}`;
  const limit = AbortSignal.timeout(timeoutMs);
  const { text, problem } = await ask(`${question}\n\n${form}`, AbortSignal.any([signal, limit]));
  if (limit.aborted && !signal.aborted) return failure(`it took longer than ${timeoutMs / 1000} s`);
  if (problem !== null) return failure(`the model could not be asked: ${problem}`);
  const verdict = verdictIn(text);
  if (verdict === null) return failure('the model did not answer with {"ok": true} or {"ok": false, "reason": …}');
  return { exit: verdict.ok ? 0 : 2, failure: null, stdout: '', stderr: verdict.ok ? '' : verdict.reason };
}

function failure(reason: string): HookResult {
  return { exit: null, failure: reason, stdout: '', stderr: '' };
}

/** Models put their JSON between other words or into a fence. */
function verdictIn(text: string): { readonly ok: boolean; readonly reason: string } | null {
  const objects = [text.trim(), ...(text.match(/\{[^{}]*\}/g) ?? [])];
  for (const candidate of objects) {
    try {
      const value: unknown = parseJson(candidate);
      if (isRecord(value) && typeof value['ok'] === 'boolean')
        return { ok: value['ok'], reason: typeof value['reason'] === 'string' ? value['reason'] : '' };
    } catch {
      /* The next one may be the answer. */
    }
  }
  return null;
}

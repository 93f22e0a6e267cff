import type { ModelRef } from '../../core/projection.js';
import { builtInPresets, keyNames } from '../../providers/presets.js';
import type { Greeting } from '../../ui/repl-options.js';
import { choseOffline } from '../open/model-opening.js';
import { version } from '../version.js';

/** One line, and where no model was found what was looked for and how to connect one. */
export function greeting(
  { provider, model }: ModelRef,
  configured: { readonly provider: string | null; readonly model: string | null },
): Greeting {
  const head = { name: `agent ${version}`, line: ` · ${provider}/${model} · /help` };
  if (provider !== 'offline' || model !== 'offline') return head;
  if (choseOffline(configured)) return head;
  const { openrouter } = builtInPresets;
  return {
    ...head,
    more: [
      'No model is connected. The embedded **offline** provider answers plain requests such as `list **/*.md`, `run ls -la`. To connect one, set a key and start again:',
      '',
      `    export ${openrouter ? keyNames(openrouter)[0] : ''}=…  # agent -m openrouter/${openrouter?.default_model ?? '<model>'}`,
      '    ollama serve                 # a local model: agent -m ollama/<model>',
      '    agent providers              # the others, and the names of their keys',
    ].join('\n'),
  };
}

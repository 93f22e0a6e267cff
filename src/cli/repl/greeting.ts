import type { ModelRef } from '../../core/conversation.js';
import { builtInPresets, keyNames } from '../../providers/catalog-presets.js';
import type { Greeting } from '../../ui/repl-options.js';
import { choseOffline } from '../open/model-opening.js';
import { version } from '../version.js';

/** One line, and where no model was found what was looked for and how to connect one. */
export function greeting({ provider, model }: ModelRef, configured: { readonly provider: string | null; readonly model: string | null }): Greeting {
  const head = { name: `agent ${version}`, line: ` · ${provider}/${model} · /help` };
  if (provider !== 'offline' || model !== 'offline') return head;
  const variables = Object.values(builtInPresets).filter((preset) => preset.key_required !== false).flatMap(keyNames);
  if (choseOffline(configured)) return head;
  return { ...head, more: [
    `No model is connected: none of ${variables.join(', ')} is set, and no Ollama (port 11434) or LM Studio (port 1234) answers here.`,
    'The embedded **offline** provider answers: it is no model, but it drives the real tools on plain requests such as `list **/*.md`, `read README.md`, `run ls -la`.', '',
    'To connect a model, set one of these and start again:', '',
    '    export OPENROUTER_API_KEY=…      # any model: agent -m openrouter/anthropic/claude-sonnet-5',
    '    export ANTHROPIC_API_KEY=…       # or OPENAI_API_KEY, DEEPSEEK_API_KEY, MOONSHOT_API_KEY, …',
    '    ollama serve                     # a local model: agent -m ollama/<model>',
  ].join('\n') };
}

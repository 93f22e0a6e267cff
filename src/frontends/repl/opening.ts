import { choseOffline } from '../../app/model-resolution.js';
import type { Settings } from '../../kernel/console/run-settings.js';
import { version } from '../../kernel/console/version.js';
import type { ModelRef } from '../../kernel/core/projection.js';
import type { SessionPort } from '../../kernel/core/session-port.js';
import type { StatusFacts } from '../../ui/components/status-line.js';
import { createKeyMap } from '../../ui/editor/keybindings.js';
import type { Greeting } from '../../ui/item-lines.js';
import type { ReplOptions } from '../../ui/repl-options.js';

/** Returns what the REPL starts with: a greeting for a new session, and the prompt of the command line. */
export function openingOf(
  session: SessionPort,
  { config }: Pick<Settings, 'config'>,
  prompt: string,
  facts: () => StatusFacts,
): ReplOptions['opening'] {
  return {
    ...(session.recent().length === 0
      ? {
          greeting: greeting(
            session.ref(),
            config.provider,
            facts(),
            createKeyMap(config.ui.bindings).keyOf('next_mode'),
          ),
          hasTips: prompt === '',
        }
      : {}),
    ...(prompt === '' ? {} : { prompt }),
  };
}

/** The calls that run without a question, by approval mode. */
const unasked: Readonly<Record<string, string>> = {
  never: 'Nothing asks except secret files and protected paths',
  dangerous: 'Edits and ordinary commands run without asking; dangerous ones ask',
  mutating: 'Reading runs without asking; edits and commands ask',
  always: 'Every call asks',
  plan: 'Plan mode: reading runs without asking, and nothing is changed',
};

/** Returns the first screen: the name and the folder, the model or how to connect one, and what runs without asking. */
export function greeting(
  { provider, model }: ModelRef,
  configured: { readonly provider: string | null; readonly model: string | null },
  { directory, branch, approval }: Pick<StatusFacts, 'directory' | 'branch' | 'approval'>,
  modeKey: string | null,
): Greeting {
  const folder = branch === undefined ? directory : `${directory} (${branch})`;
  const isConnected = provider !== 'offline' || model !== 'offline' || choseOffline(configured);
  return {
    name: `agent ${version}`,
    line: `  ${folder}  /help`,
    more: [
      ...(isConnected
        ? [`Model: ${provider}/${model} (/model)`]
        : [
            'No model connected yet. Press Enter or type /login.',
            'Simple things work offline: list **/*.md, read README.md, run ls -la',
          ]),
      `${unasked[approval] ?? ''}${modeKey === null ? '.' : ` (${modeKey}).`}`,
    ],
  };
}

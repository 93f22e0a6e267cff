import type { EventDraft, RequestSettings, ToolsData } from '../../core/event.js';
import type { Registry } from '../../core/tool.js';
import { toolsEvent } from './opening-events.js';
import type { Setup } from '../setup.js';

/** Settings that shape requests, by the name under which they are configured. */
const frozen: readonly (keyof RequestSettings)[] = [
  'model_output_size',
  'tool_protocol',
  'max_output_tokens',
  'effort',
];

/** The `tools` event that a resumed session needs because an option changes what it froze: `--tools` and `--no-tools`
 * the catalogue, `--effort` and `--set` the settings that they name. Null where nothing changes; the configuration's
 * files alone never change an old session. */
export function changedTools(
  setup: Setup,
  registry: Registry,
  last: ToolsData | null,
  chosen: string | boolean | undefined,
): EventDraft | null {
  const asked = toolsEvent(setup, registry);
  if (asked.kind !== 'tools') return null;
  if (last === null) return asked;
  const given = frozen.filter((name) => ['flag', 'set'].includes(setup.loaded.origins[name]?.kind ?? ''));
  const kept = Object.entries(last.settings).filter(([name]) => !given.some((key) => key === name));
  const explicit = Object.entries(asked.data.settings).filter(([name]) => given.some((key) => key === name));
  const tools = typeof chosen === 'string' || chosen === false ? asked.data.tools : last.tools;
  const data = { tools, settings: Object.fromEntries([...kept, ...explicit]) as unknown as RequestSettings };
  return sorted(data) === sorted(last)
    ? null
    : { kind: 'tools', content: tools.map(({ name }) => name).join(' '), data };
}

function sorted({ tools, settings }: ToolsData): string {
  return JSON.stringify([tools, Object.entries(settings).toSorted(([one], [other]) => (one < other ? -1 : 1))]);
}

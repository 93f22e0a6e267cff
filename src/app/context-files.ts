import { type ContextFile, renderSystemPrompt } from '../kernel/agent/system-prompt.js';
import { type Event, type EventDraft, type RequestSettings, type ToolsData } from '../kernel/core/event.js';
import { lastTools } from '../kernel/core/projection.js';
import type { Session } from '../kernel/agent/session.js';
import type { Registry } from '../kernel/core/tool.js';
import type { Notice, Settings } from '../kernel/console/run-settings.js';
import { isGivenOnCommandLine } from '../kernel/config/layers.js';
import { instructionPlace, repositoryRoot } from './instructions/instruction-places.js';
import { readInstructions } from './instructions/read-instructions.js';
import { toolSpecs } from './open-tools.js';
import { oldShell } from '../kernel/tools/process/shell-file.js';
import type { PromptListing, PromptStyle } from '../kernel/console/feature.js';

/** The settings that say where instructions are. */
export type PromptSettings = Pick<Settings, 'cwd' | 'config' | 'home' | 'env' | 'isBare' | 'underReview'>;

/** The parts of a system prompt that features add. */
interface PromptParts {
  readonly listing: (registry: Registry) => Promise<PromptListing>;
  readonly style: () => Promise<PromptStyle | null>;
  /** Returns the blocks that it ends with; '' for none. */
  readonly notes: () => Promise<string>;
}

/** Returns the first events of a new session, and the notices for the user; nothing for a session that is resumed. */
export async function sessionBeginning(
  settings: PromptSettings,
  registry: Registry,
  { restored }: { readonly restored: readonly Event[] },
  parts: PromptParts,
): Promise<{ readonly opening: readonly EventDraft[]; readonly notices: readonly Notice[] }> {
  if (restored.length > 0) return { opening: [], notices: [] };
  const { files, list, notices } = readInstructions(instructionPlace(settings));
  const { text: skills, notices: more } = await parts.listing(registry);
  const style = await parts.style();
  return {
    opening: openingEvents(settings, registry, { files, rules: list, skills, style, notes: await parts.notes() }),
    notices: [
      ...more,
      ...(style?.notices ?? []),
      ...notices.map((notice): Notice => ({ ...notice, code: 'context_file' })),
    ],
  };
}

/** The change of the system prompt when a session is resumed. */
export interface PromptChange {
  /** The new prompt, rendered with the instructions as they are now. Null: the prompt stays. */
  readonly prompt: EventDraft | null;
  readonly notices: readonly Notice[];
}

const staysAsIs: PromptChange = { prompt: null, notices: [] };

/** Compares the system prompt of a resumed session with the user's own one. An option changes it; a different setting
 * of a file or the environment does not, and a notice says so. `mask` hides secrets as the log does. */
export async function changedPrompt(
  settings: PromptSettings & Pick<Settings, 'loaded'>,
  registry: Registry,
  { restored }: { readonly restored: readonly Event[] },
  { mask, ...parts }: PromptParts & { readonly mask: (text: string) => string },
): Promise<PromptChange> {
  const last = restored.findLast(({ kind }) => kind === 'system')?.content ?? null;
  if (last === null) return staysAsIs;
  const own = ownPrompts(settings, mask);
  const given = own.filter(({ key }) => isGivenOnCommandLine(settings.loaded, key));
  if (given.length === 0)
    return own.every(({ text, isIn }) => text === '' || isIn(last))
      ? staysAsIs
      : { prompt: null, notices: [keptPrompt] };
  if (given.every(({ text, isIn }) => text !== '' && isIn(last))) return staysAsIs;
  const [prompt] = (await sessionBeginning(settings, registry, { restored: [] }, parts)).opening;
  return prompt === undefined || mask(prompt.content ?? '') === last
    ? staysAsIs
    : { prompt, notices: [replacedPrompt] };
}

/** A text of the user in a system prompt. */
interface OwnPrompt {
  readonly key: 'system_prompt' | 'replace_system_prompt';
  readonly text: string;
  readonly isIn: (prompt: string) => boolean;
}

function ownPrompts({ config: { request } }: PromptSettings, mask: (text: string) => string): readonly OwnPrompt[] {
  const added = mask(request.systemPrompt ?? '').trim();
  const replaced = mask(request.replacedPrompt ?? '').trim();
  return [
    { key: 'system_prompt', text: added, isIn: (prompt) => prompt.endsWith(`\n\n${added}`) },
    {
      key: 'replace_system_prompt',
      text: replaced,
      isIn: (prompt) => prompt === replaced || prompt.startsWith(`${replaced}\n\n`),
    },
  ];
}

const keptPrompt: Notice = {
  level: 'info',
  code: 'system_prompt_kept',
  message:
    'This session still uses its first system prompt; the settings have another. Use it with --append-system-prompt or --replace-system-prompt.',
};
const replacedPrompt: Notice = {
  level: 'warn',
  code: 'system_prompt_changed',
  message: 'The system prompt of this session changed: the next request is not cached.',
};

/** Returns the first events of the session of an agent: who it is, what it knows, and its tools. `known`: texts that
 * it knows from the beginning, and what its prompt lists. */
export function agentOpening(
  settings: PromptSettings,
  registry: Registry,
  { role, known }: { readonly role: string; readonly known: readonly string[] },
): readonly EventDraft[] {
  const { files, list } = readInstructions(instructionPlace(settings));
  const skills = known.filter((text) => text !== '').join('\n\n');
  const { config } = settings;
  const own = { ...config, request: { ...config.request, systemPrompt: null, replacedPrompt: null } };
  return openingEvents({ ...settings, config: own }, registry, { files, rules: list, skills, notes: '', role });
}

/** The parts of the system prompt besides the tools. `rules`, `skills` and `notes` are sections of it, or ''. */
interface SessionContext {
  readonly files: readonly ContextFile[];
  readonly rules: string;
  readonly skills: string;
  readonly notes: string;
  readonly style?: PromptStyle | null;
  readonly role?: string;
}

/** Returns the first two events of a session: the system prompt, and the tools with the settings that shape
 * requests. */
function openingEvents(
  { cwd, config, env }: Pick<Settings, 'cwd' | 'config' | 'env'>,
  registry: Registry,
  { files: contextFiles, rules, skills, notes, style = null, role }: SessionContext,
): readonly EventDraft[] {
  const content = renderSystemPrompt({
    cwd,
    platform: [process.platform, oldShell(env)].filter((part) => part !== null).join(', '),
    date: new Date().toISOString().slice(0, 10),
    isGitRepository: repositoryRoot(cwd) !== null,
    tools: registry.list(),
    contextFiles,
    rules,
    skills,
    notes,
    style,
    ...(role === undefined ? {} : { role }),
    userPrompt: config.request.systemPrompt ?? '',
    replacedPrompt: config.request.replacedPrompt ?? '',
  });
  return [{ kind: 'system', content, data: null }, toolsEvent(config, registry)];
}

/** Returns the event of the tools that are offered, with the settings that shape requests. `kept`: those that the
 * session has, where it has some. */
export function toolsEvent(
  { limits, request, provider }: Settings['config'],
  registry: Registry,
  kept: Partial<RequestSettings> = {},
): Extract<EventDraft, { readonly kind: 'tools' }> {
  const data: ToolsData = {
    tools: toolSpecs(registry),
    settings: {
      model_output_size: limits.modelOutputBytes,
      ...(provider.toolProtocol === 'auto' ? {} : { tool_protocol: provider.toolProtocol }),
      ...(request.maxOutputTokens === null ? {} : { max_output_tokens: request.maxOutputTokens }),
      ...(request.effort === null ? {} : { effort: request.effort }),
      ...kept,
    },
  };
  return { kind: 'tools', content: data.tools.map((tool) => tool.name).join(' '), data };
}

/** Records in a session that its requests ask for another effort from now on. */
export async function recordEffort(
  session: Pick<Session, 'recent' | 'append'>,
  { config }: Pick<Settings, 'config'>,
  registry: Registry,
  effort: string,
): Promise<void> {
  const last = lastTools(session.recent());
  const event = toolsEvent(config, registry, { ...last?.settings, effort });
  const tools = last?.tools ?? event.data.tools;
  await session.append({ ...event, content: tools.map(({ name }) => name).join(' '), data: { ...event.data, tools } });
}

/** Settings that shape requests, by the names in the configuration. */
const frozen: readonly (keyof RequestSettings)[] = [
  'model_output_size',
  'tool_protocol',
  'max_output_tokens',
  'effort',
];

/** Returns the `tools` event for a resumed session whose recorded tools or settings an option changes: `--tools` and
 * `--no-tools` change the tools, `--effort` and `--set` the settings that they name. Returns null where nothing
 * changes. The configuration's files alone never change an old session. */
export function changedTools(
  { config, loaded }: Pick<Settings, 'config' | 'loaded'>,
  registry: Registry,
  last: ToolsData | null,
  chosen: string | boolean | undefined,
): EventDraft | null {
  const asked = toolsEvent(config, registry);
  if (last === null) return asked;
  const given = frozen.filter((name) => ['flag', 'set'].includes(loaded.origins[name]?.kind ?? ''));
  const kept = Object.entries(last.settings).filter(([name]) => !given.some((key) => key === name));
  const explicit = Object.entries(asked.data.settings).filter(([name]) => given.some((key) => key === name));
  const tools = typeof chosen === 'string' || chosen === false ? asked.data.tools : last.tools;
  const data = { tools, settings: Object.fromEntries([...kept, ...explicit]) as RequestSettings };
  return sorted(data) === sorted(last)
    ? null
    : { kind: 'tools', content: tools.map(({ name }) => name).join(' '), data };
}

function sorted({ tools, settings }: ToolsData): string {
  return JSON.stringify([tools, Object.entries(settings).toSorted(([one], [other]) => (one < other ? -1 : 1))]);
}

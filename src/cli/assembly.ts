import { createHash } from 'node:crypto';
import { dirname } from 'node:path';
import { renderSystemPrompt } from '../agent/system-prompt.js';
import { createSession, type Session } from '../agent/session.js';
import { knownEvent, type Event, type EventDraft, type ToolsData } from '../core/event.js';
import type { SessionRow, Store } from '../core/store.js';
import type { Registry } from '../core/tool.js';
import { readContextFiles, repositoryRoot } from './context-files.js';
import type { Notice } from './headless.js';
import { openModel, type ModelWish, type OpenedModel } from './model-opening.js';
import type { RootOptions } from './options.js';
import { openPolicy } from './policy-opening.js';
import { newSessionId, openSession, type OpenedSession, type SessionWish } from './session-files.js';
import { spendCheck } from './spend-limit.js';
import type { Setup } from './setup.js';
import { openStore } from './store-opening.js';
import { openToolbox, toolSpecs } from './toolbox.js';

/** A session with all its parts, ready for its first turn. */
export interface Assembly {
  readonly session: Session;
  readonly store: Store;
  readonly row: SessionRow;
  readonly registry: Registry;
  readonly model: OpenedModel;
  readonly durable: boolean;
  readonly notices: readonly Notice[];
  /** Gives back the lease, the store and the connection. */
  close(): Promise<void>;
}

export interface AssemblyOptions { readonly options: RootOptions; readonly wish: SessionWish; readonly interactive: boolean }

/** Puts a session together. Throws a `CliError` with the exit code of what is wrong. */
export async function assemble(setup: Setup, { options, wish, interactive }: AssemblyOptions): Promise<Assembly> {
  const opening = await openStore(setup, options.ephemeral === true);
  const { store } = opening;
  try {
    const createdAt = Date.now();
    const fresh: SessionRow = { id: newSessionId(() => createdAt), parentId: null, cwd: setup.cwd, title: null, provider: null, model: null, createdAt, updatedAt: createdAt };
    const opened = await openSession(store, wish, fresh);
    const model = await openModel(setup, modelWish(setup, opened));
    const { registry, processes } = await openToolbox(setup, options.tools);
    const context = opened.restored.length > 0 ? { files: [], notices: [] } : readContextFiles(setup.cwd, dirname(setup.config.files.config));
    const row: SessionRow = { ...opened.row, cwd: setup.cwd, provider: model.ref.provider, model: model.ref.model };
    const session = createSession({
      store, row, registry, interactive, model,
      restored: opened.restored,
      opening: openingEvents(setup, registry, context.files),
      policy: openPolicy(setup),
      connect: async (ref) => (await openModel(setup, { provider: ref.provider, model: ref.model })).provider,
      refuseRequest: spendCheck(setup, model.ref),
      limits: setup.config.limits,
      sha256: (text) => createHash('sha256').update(text).digest('hex'),
      now: Date.now, log: setup.log,
    });
    const notices = [...setup.notices, ...opening.notices, ...context.notices.map((message): Notice => ({ level: 'warn', code: 'context_file', message }))];
    const changed = await resume(session, opened, model, registry, setup, options);
    return {
      session, store, row, registry, model, durable: opening.durable, notices: [...notices, ...changed],
      close: async () => {
        await session.flush();
        await processes.killBackground();
        await opened.release().catch(() => undefined);
        await store.close();
        model.close();
      },
    };
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** What was said on the command line wins, then what the session used, then the configuration. A session of the embedded provider has no
 *  preference: once there is a real model, it goes on with that. */
function modelWish(setup: Setup, opened: OpenedSession): ModelWish {
  const { provider, model } = setup.config.provider;
  const explicit = ['model', 'provider', 'base_url'].some((key) => ['flag', 'set'].includes(setup.loaded.origins[key]?.kind ?? ''));
  const { row } = opened;
  if (!explicit && opened.restored.length > 0 && row.provider !== null && row.model !== null && row.model !== 'offline') return { provider: row.provider, model: row.model };
  return { provider, model };
}

function openingEvents(setup: Setup, registry: Registry, contextFiles: Parameters<typeof renderSystemPrompt>[0]['contextFiles']): readonly EventDraft[] {
  const content = renderSystemPrompt({
    cwd: setup.cwd, platform: process.platform, date: new Date().toISOString().slice(0, 10), isGitRepository: repositoryRoot(setup.cwd) !== null,
    toolNames: registry.list().map((tool) => tool.name), contextFiles, userPrompt: setup.config.request.systemPrompt ?? '',
  });
  return [{ kind: 'system', content, data: null }, toolsEvent(setup, registry)];
}

function toolsEvent(setup: Setup, registry: Registry): EventDraft {
  const { limits, request, provider } = setup.config;
  const data: ToolsData = {
    tools: toolSpecs(registry),
    settings: {
      model_output_size: limits.modelOutputBytes,
      ...(provider.toolProtocol === 'auto' ? {} : { tool_protocol: provider.toolProtocol }),
      ...(request.maxOutputTokens === null ? {} : { max_output_tokens: request.maxOutputTokens }),
      ...(request.effort === null ? {} : { effort: request.effort }),
    },
  };
  return { kind: 'tools', content: data.tools.map((tool) => tool.name).join(' '), data };
}

/** Brings an old session up to what is asked of it now: open calls answered, another model noted, an explicit change of tools appended. */
async function resume(session: Session, opened: OpenedSession, model: OpenedModel, registry: Registry, setup: Setup, options: RootOptions): Promise<readonly Notice[]> {
  if (opened.restored.length === 0) return [];
  await session.repair();
  if (opened.row.provider !== model.ref.provider || opened.row.model !== model.ref.model) await session.switchModel(model.ref);
  if (typeof options.tools !== 'string' && options.tools !== false) return [];
  const tools = toolsEvent(setup, registry);
  if (JSON.stringify(tools.data) === JSON.stringify(lastTools(opened.restored))) return [];
  await session.append(tools);
  return [{ level: 'info', code: 'tools_changed', message: 'The tools changed; the provider reads the whole conversation anew, its cache does not help.' }];
}

function lastTools(events: readonly Event[]): ToolsData | null {
  const event = events.findLast((item) => item.kind === 'tools');
  const known = event ? knownEvent(event) : null;
  return known?.kind === 'tools' ? known.data : null;
}

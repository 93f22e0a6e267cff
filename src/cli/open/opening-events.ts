import { dirname } from 'node:path';
import { renderSystemPrompt, type ContextFile } from '../../agent/system-prompt.js';
import { knownEvent, type Event, type EventDraft, type ToolsData } from '../../core/event.js';
import type { Registry } from '../../core/tool.js';
import { readContextFiles, repositoryRoot, type ContextFiles } from './context-files.js';
import type { Setup } from '../setup.js';
import { toolSpecs } from './toolbox.js';

export function readContext(setup: Setup): ContextFiles {
  return readContextFiles(setup.cwd, dirname(setup.config.files.config));
}

/** The first two events of a session: the rendered prompt, and the catalogue with the settings that shape requests. */
export function openingEvents(
  setup: Setup,
  registry: Registry,
  contextFiles: readonly ContextFile[],
): readonly EventDraft[] {
  const content = renderSystemPrompt({
    cwd: setup.cwd,
    platform: process.platform,
    date: new Date().toISOString().slice(0, 10),
    isGitRepository: repositoryRoot(setup.cwd) !== null,
    tools: registry.list(),
    contextFiles,
    userPrompt: setup.config.request.systemPrompt ?? '',
  });
  return [{ kind: 'system', content, data: null }, toolsEvent(setup, registry)];
}

export function toolsEvent(setup: Setup, registry: Registry): EventDraft {
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

export function lastTools(events: readonly Event[]): ToolsData | null {
  const event = events.findLast((item) => item.kind === 'tools');
  const known = event ? knownEvent(event) : null;
  return known?.kind === 'tools' ? known.data : null;
}

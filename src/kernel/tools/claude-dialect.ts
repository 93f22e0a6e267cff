import { basename, resolve } from 'node:path';
import { type Envelope, isError } from '../core/envelope.js';
import type { Event } from '../core/event.js';
import type { HookedAgent, HookedCall, HookScene, Occasion } from '../core/hooks.js';
import type { ToolArgs } from '../core/tool.js';
import type { ApprovalMode } from '../core/policy.js';
import { dialectOf } from './claude-names.js';

/** The names by which a matcher may mean an occasion; none: it has nothing to match. */
export function subjectsOf(occasion: Occasion, agent?: HookedAgent): readonly string[] {
  switch (occasion.event) {
    case 'PreToolUse':
    case 'PermissionRequest':
    case 'PostToolUse':
    case 'PostToolUseFailure':
    case 'PermissionDenied':
      return calledNames(occasion.call);
    case 'SessionStart':
      return [occasion.source];
    case 'PreCompact':
    case 'PostCompact':
      return [occasion.trigger];
    case 'StopFailure':
      return [occasion.error];
    case 'Notification':
      return [occasion.type];
    case 'SessionEnd':
      return [occasion.reason];
    case 'SubagentStart':
    case 'SubagentStop':
      return agent ? [agent.type] : [];
    case 'BeforeModel':
    case 'AfterModel':
      return [occasion.model, `${occasion.provider}/${occasion.model}`];
    case 'FileChanged':
      return [basename(occasion.path), occasion.path];
    case 'ConfigChange':
      return [occasion.source];
    case 'InstructionsLoaded':
      return [occasion.file.reason];
    case 'Elicitation':
      return [occasion.question.server];
    case 'UserPromptSubmit':
    case 'PostToolBatch':
    case 'MessageDisplay':
    case 'Stop':
    case 'WorktreeCreate':
    case 'WorktreeRemove':
      return [];
    default:
      return occasion satisfies never;
  }
}

/** Returns the names by which a matcher may mean a call. A matcher for `Edit` also means a call with several edits. */
function calledNames(call: Pick<HookedCall, 'tool' | 'args'>): readonly string[] {
  const { names = [], several } = dialectOf(call.tool) ?? {};
  return [call.tool, ...names, ...(several !== undefined && hasSeveralEdits(call.args) ? [several] : [])];
}

function hasSeveralEdits({ edits }: ToolArgs): boolean {
  return Array.isArray(edits);
}

/** The input of a hook besides the occasion. */
interface Surroundings {
  /** As Claude Code names it. */
  readonly mode: string;
  readonly agent: HookedAgent | undefined;
  /** Returns the path of a session's transcript. */
  readonly transcript: (session: string, events: readonly Event[], agent?: HookedAgent) => string;
}

/** Returns the object that a hook reads on its standard input. Inside a sub-agent it describes the user's session, and
 * the sub-agent beside it. */
export function hookInput(
  occasion: Occasion,
  scene: HookScene,
  { mode, agent, transcript }: Surroundings,
): Readonly<Record<string, unknown>> {
  const { session, events } = agent?.within ?? scene;
  return {
    session_id: session,
    prompt_id: scene.prompt,
    transcript_path: transcript(session, events()),
    cwd: scene.cwd,
    permission_mode: mode,
    hook_event_name: occasion.event,
    ...(agent ? { agent_id: agent.id, agent_type: agent.type } : {}),
    ...fieldsOf(occasion, scene),
    ...(agent && occasion.event === 'SubagentStop'
      ? { agent_transcript_path: transcript(agent.id, scene.events(), agent) }
      : {}),
  };
}

function fieldsOf(
  occasion: Occasion,
  { cwd, prompt }: Pick<HookScene, 'cwd' | 'prompt'>,
): Readonly<Record<string, unknown>> {
  switch (occasion.event) {
    case 'SessionStart':
      return { source: occasion.source, model: occasion.model };
    case 'UserPromptSubmit':
      return { prompt: occasion.prompt };
    case 'PreToolUse':
    case 'PermissionRequest':
      return callFields(occasion.call, cwd);
    case 'PostToolUse':
      return {
        ...callFields(occasion.call, cwd),
        tool_response: response(occasion.call, occasion.envelope, cwd),
        duration_ms: occasion.durationMs,
      };
    case 'PostToolUseFailure':
      return {
        ...callFields(occasion.call, cwd),
        error: isError(occasion.envelope) ? occasion.envelope.error : '',
        tool_response: occasion.envelope,
        is_interrupt: isError(occasion.envelope) && occasion.envelope.code === 'cancelled',
        duration_ms: occasion.durationMs,
      };
    case 'PermissionDenied':
      return { ...callFields(occasion.call, cwd), reason: occasion.reason, decided_by: occasion.by };
    case 'PostToolBatch':
      return {
        tool_calls: occasion.calls.map(({ call, envelope }) => ({
          ...callFields(call, cwd),
          tool_response: isError(envelope) ? envelope.error : envelope.output,
        })),
      };
    case 'Notification':
      return { message: occasion.message, notification_type: occasion.type };
    case 'Stop':
    case 'SubagentStop':
      return { stop_hook_active: occasion.again, last_assistant_message: occasion.text };
    case 'StopFailure':
      return { error: occasion.error, error_details: occasion.message, last_assistant_message: '' };
    case 'SubagentStart':
      return {};
    case 'PreCompact':
      return { trigger: occasion.trigger, custom_instructions: occasion.instructions };
    case 'PostCompact':
      return { trigger: occasion.trigger, compact_summary: occasion.summary };
    case 'SessionEnd':
      return { reason: occasion.reason };
    default:
      return fieldsOfOthers(occasion, prompt);
  }
}

/** The fields of events that are about no call, no turn and no compaction. */
function fieldsOfOthers(
  occasion: Extract<
    Occasion,
    {
      readonly event:
        | 'BeforeModel'
        | 'AfterModel'
        | 'MessageDisplay'
        | 'FileChanged'
        | 'ConfigChange'
        | 'InstructionsLoaded'
        | 'WorktreeCreate'
        | 'WorktreeRemove'
        | 'Elicitation';
    }
  >,
  prompt: string,
): Readonly<Record<string, unknown>> {
  switch (occasion.event) {
    case 'BeforeModel':
      return { provider: occasion.provider, model: occasion.model, llm_request: occasion.body };
    case 'AfterModel':
      return { provider: occasion.provider, model: occasion.model, llm_response: occasion.answer };
    case 'MessageDisplay':
      return { turn_id: prompt, message_id: occasion.message, index: 0, final: true, delta: occasion.text };
    case 'FileChanged':
      return { file_path: occasion.path, event: occasion.change };
    case 'ConfigChange':
      return { source: occasion.source, file_path: occasion.path };
    case 'WorktreeCreate':
      return { name: occasion.name };
    case 'WorktreeRemove':
      return { worktree_path: occasion.path };
    case 'InstructionsLoaded': {
      const { path, memory, reason, globs } = occasion.file;
      return { file_path: path, memory_type: memory, load_reason: reason, ...(globs === null ? {} : { globs }) };
    }
    case 'Elicitation': {
      const { server, message, mode, url, schema } = occasion.question;
      return {
        mcp_server_name: server,
        message,
        mode,
        ...(url === null ? {} : { url }),
        ...(schema === null ? {} : { requested_schema: schema }),
      };
    }
    default:
      return occasion satisfies never;
  }
}

function callFields(call: HookedCall, cwd: string): Readonly<Record<string, unknown>> {
  return {
    ...theirCall(call, cwd),
    tool_use_id: call.id,
    agent_tool: { name: call.tool, input: call.args },
  };
}

/** A call as Claude Code would have made it. */
export function theirCall(
  call: Pick<HookedCall, 'tool' | 'args'>,
  cwd: string,
): { readonly tool_name: string; readonly tool_input: ToolArgs } {
  const { names = [], several } = dialectOf(call.tool) ?? {};
  const name = several !== undefined && hasSeveralEdits(call.args) ? several : names[0];
  return { tool_name: name ?? call.tool, tool_input: theirInput(call, cwd) };
}

/** Our arguments as Claude Code would have them: its names, absolute paths, milliseconds. */
function theirInput({ tool, args }: Pick<HookedCall, 'tool' | 'args'>, cwd: string): ToolArgs {
  const dialect = dialectOf(tool);
  if (!dialect) return args;
  return Object.fromEntries(
    Object.entries(args).map(([key, value]) => {
      if (key === 'path' && typeof value === 'string') return [dialect.keys?.[key] ?? key, absolute(value, cwd)];
      if (key === 'timeout_seconds' && typeof value === 'number') return ['timeout', value * 1000];
      return [dialect.keys?.[key] ?? key, value];
    }),
  );
}

/** Stored outputs (`event:7`) are no files. */
function absolute(path: string, cwd: string): string {
  return /^event:\d+$/.test(path) ? path : resolve(cwd, path);
}

/** Input that a hook gives instead, as our tool takes it. What we do not know stays, so that the schema refuses it;
 * `description` alone, which Claude Code's own calls carry, is left out. */
export function ourArguments(tool: string, input: ToolArgs): ToolArgs {
  const dialect = dialectOf(tool);
  if (!dialect) return input;
  const ours = new Map(Object.entries(dialect.keys ?? {}).map(([mine, theirs]) => [theirs, mine]));
  return Object.fromEntries(
    Object.entries(input).flatMap(([key, value]) => {
      if (key === 'timeout' && typeof value === 'number') return [['timeout_seconds', Math.ceil(value / 1000)]];
      return key === 'description' && tool === 'bash' ? [] : [[ours.get(key) ?? key, value]];
    }),
  );
}

function response({ tool, args }: HookedCall, envelope: Envelope, cwd: string): unknown {
  if (isError(envelope)) return envelope;
  const path = typeof args['path'] === 'string' ? absolute(args['path'], cwd) : '';
  switch (tool) {
    case 'bash':
      return { stdout: envelope.output, stderr: '', interrupted: false, isImage: false };
    case 'file_read':
      return { type: 'text', file: { filePath: path, content: envelope.output } };
    case 'file_write':
    case 'file_edit':
      return { filePath: path, success: true };
    default:
      return envelope;
  }
}

/** Returns Claude Code's name of the mode in which calls are judged. */
export function claudeMode(policy: { planning(): boolean; mode(): ApprovalMode }): string {
  return policy.planning() ? 'plan' : policy.mode() === 'never' ? 'bypassPermissions' : 'default';
}

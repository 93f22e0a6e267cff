import { type Event, knownEvent, type UsageData } from '../../kernel/core/event.js';

/** The facts of a moment, as a status line shows them. */
export interface StatusMoment {
  readonly sessionId: string;
  readonly title: string | null;
  readonly provider: string;
  readonly model: string;
  readonly cwd: string;
  readonly addedFolders: readonly string[];
  readonly branch: string | null;
  readonly approval: string;
  readonly sandbox: string;
  readonly busy: boolean;
  readonly effort: string | null;
  /** The mode of vim's keys; null where they are not used. */
  readonly vimMode: string | null;
  readonly costUsd: number;
  /** The price of each request is known. */
  readonly costKnown: boolean;
  readonly tokens: Readonly<Record<'input' | 'output' | 'cache_read' | 'cache_write', number>>;
  /** Tokens of the last request and its response. */
  readonly contextTokens: number;
  readonly contextWindow: number | null;
}

/** Facts that change all the time or that take work: they are only asked for when the program runs. */
export interface StatusDetails {
  readonly version: string;
  readonly events: readonly Event[];
  readonly lines: ChangedLines;
  readonly durationMs: number;
  readonly apiDurationMs: number;
  /** Empty: it cannot be written. */
  readonly transcript: string;
  /** Null: none is chosen. */
  readonly outputStyle: string | null;
}

export interface ChangedLines {
  readonly added: number;
  readonly removed: number;
}

/** Claude Code always names a size; this is its own where nobody knows that of the model. */
const usualWindow = 200_000;

/** Returns the object that the program of the status line reads: the fields of Claude Code, and ours beside them. Source:
 * code.claude.com, "Customize your status line", and inputs of version 2.1.267, read in November 2026. */
export function statusInput(moment: StatusMoment, details: StatusDetails): Readonly<Record<string, unknown>> {
  const { title, provider, model, cwd, effort, vimMode, contextTokens, contextWindow } = moment;
  const percent = contextWindow === null ? null : Math.round((contextTokens / contextWindow) * 100);
  return {
    hook_event_name: 'Status',
    session_id: moment.sessionId,
    ...(title === null ? {} : { session_name: title }),
    transcript_path: details.transcript,
    cwd,
    model: { id: model, display_name: model.split('/').at(-1) ?? model, provider },
    workspace: { current_dir: cwd, project_dir: cwd, added_dirs: moment.addedFolders },
    version: details.version,
    output_style: { name: details.outputStyle ?? 'default' },
    cost: {
      total_cost_usd: moment.costUsd,
      total_duration_ms: Math.round(details.durationMs),
      total_api_duration_ms: Math.round(details.apiDurationMs),
      total_lines_added: details.lines.added,
      total_lines_removed: details.lines.removed,
    },
    ...contextOf(details.events, contextWindow),
    ...(effort === null ? {} : { effort: { level: effort } }),
    thinking: { enabled: effort !== null && effort !== 'none' },
    ...(vimMode === null ? {} : { vim: { mode: vimMode.toUpperCase() } }),
    // Our own fields. `session_id` and `cwd` are the same.
    branch: moment.branch,
    approval: moment.approval,
    sandbox: moment.sandbox,
    busy: moment.busy,
    cost_usd: moment.costKnown ? moment.costUsd : null,
    tokens: moment.tokens,
    context: { used: contextTokens, window: contextWindow, percent },
  };
}

/** The tokens of the last request. Before the first one the numbers are null, as there. */
function contextOf(events: readonly Event[], contextWindow: number | null): Readonly<Record<string, unknown>> {
  const usage = lastUsage(events);
  const input = usage === null ? 0 : usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens;
  const output = usage?.output_tokens ?? 0;
  const used =
    usage === null || contextWindow === null ? null : Math.min(100, Math.round((input / contextWindow) * 100));
  return {
    context_window: {
      total_input_tokens: input,
      total_output_tokens: output,
      context_window_size: contextWindow ?? usualWindow,
      current_usage: usage && {
        input_tokens: usage.input_tokens,
        output_tokens: output,
        cache_creation_input_tokens: usage.cache_write_tokens,
        cache_read_input_tokens: usage.cache_read_tokens,
      },
      used_percentage: used,
      remaining_percentage: used === null ? null : 100 - used,
    },
    exceeds_200k_tokens: input + output > usualWindow,
  };
}

function lastUsage(events: readonly Event[]): UsageData | null {
  for (let at = events.length - 1; at >= 0; at--) {
    const event = events[at];
    const known = event?.kind === 'usage' ? knownEvent(event) : null;
    if (known?.kind === 'usage' && known.data.purpose === undefined) return known.data;
  }
  return null;
}

/** Counts the lines that calls of a session have added and removed. Each call looks at new events only. */
export function createLineCount(): (session: string, events: readonly Event[]) => ChangedLines {
  let last = { session: '', count: 0, added: 0, removed: 0 };
  return (session, events) => {
    const isKnown = last.session === session && last.count <= events.length;
    let { added, removed } = isKnown ? last : { added: 0, removed: 0 };
    for (const event of events.slice(isKnown ? last.count : 0)) {
      const known = event.kind === 'tool_result' ? knownEvent(event) : null;
      if (known?.kind !== 'tool_result' || known.data.diff === undefined) continue;
      for (const line of known.data.diff.split('\n')) {
        if (/^\+(?!\+\+ )/.test(line)) added++;
        if (/^-(?!-- )/.test(line)) removed++;
      }
    }
    last = { session, count: events.length, added, removed };
    return { added, removed };
  };
}

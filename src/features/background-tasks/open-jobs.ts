import type { Session } from '../../kernel/agent/session.js';
import type { Event } from '../../kernel/core/event.js';
import { isRecord } from '../../kernel/core/json.js';
import { loadOnce, longestTimerMs } from '../../kernel/core/runtime.js';
import type { Tool } from '../../kernel/core/tool.js';
import type { Background } from '../../kernel/tools/bash.js';
import type { Jobs } from './background.js';

/** The commands in the background of this run. */
export interface OpenedJobs {
  /** Loads their code with the first use. */
  get(): Promise<Jobs>;
  /** Null where nobody has asked for them. */
  started(): Jobs | null;
  /** Returns the tools; where `jobs` is among them, commands can run in the background. */
  joined(tools: readonly Tool[]): readonly Tool[];
  /** Gives jobs to a session and tells it of each that has ended. Returns how that ends. */
  attach(session: Session): () => void;
  close(): void;
}

/** `shellTool` makes the tool that runs commands, with a background to run them in. */
export function openJobs(shellTool: (background: Background) => Tool | undefined): OpenedJobs {
  let started: Jobs | null = null;
  const sessions = new Map<Session, () => void>();
  const loaded = loadOnce(async () => {
    const [{ createJobs }, { endNote, recordedJobs }] = await Promise.all([
      import('./background.js'),
      import('./jobs-tool.js'),
    ]);
    const jobs = createJobs({ clock: () => performance.now(), schedule });
    const attach = (session: Session): (() => void) =>
      jobs.attach(session.id, recordedJobs(session.events()).next, (job, lastWords) => {
        tell(session, endNote(job, lastWords));
      });
    for (const session of sessions.keys()) sessions.set(session, attach(session));
    started = jobs;
    return { jobs, attach };
  });
  const background: Background = { run: async (command, ctx) => await (await loaded.get()).jobs.run(command, ctx) };
  return {
    get: async () => (await loaded.get()).jobs,
    started: () => started,
    joined: (tools) => {
      if (!tools.some(({ toolset }) => toolset.name === 'jobs')) return tools;
      const shell = shellTool(background);
      return tools.map((tool) => (tool.name === shell?.name ? shell : tool));
    },
    attach: (session) => {
      sessions.set(session, () => undefined);
      void loaded.started()?.then(({ attach }) => {
        if (sessions.has(session)) sessions.set(session, attach(session));
      });
      return () => {
        sessions.get(session)?.();
        sessions.delete(session);
      };
    },
    close: () => {
      started?.close();
    },
  };
}

function schedule(callback: () => void, delayMs: number): () => void {
  const timer = setTimeout(callback, Math.min(delayMs, longestTimerMs));
  return () => {
    clearTimeout(timer);
  };
}

/** What comes between turns is on the record, and on the screen, at once. */
function tell(session: Session, note: string): void {
  if (session.busy()) session.tell(note);
  else void session.append({ kind: 'user', content: note, data: { note: true } });
}

/** Returns what the model is told of jobs that an earlier run of the program has left open on the record. */
export async function jobNotes(jobs: OpenedJobs, events: readonly Event[]): Promise<readonly string[]> {
  if (!events.some(startedJob)) return [];
  const { lostNote, recordedJobs } = await import('./jobs-tool.js');
  const running = new Set((jobs.started()?.list() ?? []).flatMap(({ id, end }) => (end === null ? [id] : [])));
  const lost = recordedJobs(events).open.filter((id) => !running.has(id));
  return lost.length === 0 ? [] : [lostNote(lost)];
}

function startedJob({ kind, data }: Event): boolean {
  return kind === 'tool_result' && isRecord(data) && data.name === 'bash' && String(data.output).includes('"job":');
}

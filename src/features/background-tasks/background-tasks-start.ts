import type { Session } from '../../kernel/agent/session.js';
import type { Event } from '../../kernel/core/event.js';
import { isRecord } from '../../kernel/core/json.js';
import { addNote } from '../../kernel/agent/session-note.js';
import { loadOnce, longestTimerMs } from '../../kernel/core/runtime.js';
import type { RunHost, RunPart, ToolsHost, ToolsPart } from '../../kernel/console/feature.js';
import { backgroundWork } from '../../kernel/console/background-work.js';
import type { Background } from '../../kernel/tools/bash.js';
import type { Job, Jobs } from './background.js';
import { type OpenedJobs, openedJobs } from './job-parts.js';

/** Loads the code of jobs, which a run without any does not need. */
export const loadJobs = () => import('./background-tasks-code.js');

/** Loads the lines that wake the model, and `/jobs`. */
export const loadWakes = () => import('./wakes-code.js');

/** Adds the jobs of a run to its parts. Where the tool `jobs` is offered, the tool that runs commands can run them in
 * the background. */
export function openJobTools({ parts, registry, shellTool }: ToolsHost): ToolsPart {
  const { jobs, background } = createOpenedJobs();
  parts.add(openedJobs, jobs);
  parts.add(backgroundWork, async () => {
    const all = jobs.started()?.list() ?? [];
    return all.length === 0 ? [] : (await loadJobs()).jobRows(all);
  });
  return {
    joined: (tools) => {
      if (!tools.some(({ toolset }) => toolset.name === 'jobs')) return tools;
      const shell = shellTool(background);
      if (!shell) return tools;
      // It may be offered already, in the form without a background.
      const all = registry.unregister(shell.name) ? [shell, ...tools] : tools;
      return all.map((tool) => (tool.name === shell.name ? shell : tool));
    },
    close: () => {
      jobs.close();
    },
  };
}

/** Opens what jobs do in a session: it is notified of those that have ended. */
export function openJobPart({ parts }: RunHost): RunPart {
  const jobs = parts.get(openedJobs);
  const isRunning = ({ end }: Job): boolean => end === null;
  return {
    follow: ({ session, within }) => (within ? () => undefined : jobs.attach(session)),
    notesBefore: async (restored) => await jobNotes(jobs, restored),
    running: () => (jobs.started()?.list() ?? []).filter(isRunning).length,
    toBackground: (sessionId) => jobs.started()?.toBackground(sessionId) === 'moved',
  };
}

function createOpenedJobs(): { readonly jobs: OpenedJobs; readonly background: Background } {
  let started: Jobs | null = null;
  let inRepl = false;
  const sessions = new Map<Session, () => void>();
  const loaded = loadOnce(async () => {
    const { createJobs, endNote, recordedJobs } = await loadJobs();
    const clock = (): number => performance.now();
    const jobs = createJobs({ clock, schedule });
    const attach = (session: Session): (() => void) => {
      const waker = loadOnce(async () =>
        (await loadWakes()).createWaker({ session, jobs, clock, schedule, startsTurns: () => inRepl }),
      );
      const leave = jobs.attach(session.id, recordedJobs(session.recent()).next, {
        ended: (job, lastWords) => {
          addNote(session, endNote(job, lastWords));
        },
        waker: () => waker.get(),
      });
      return () => {
        leave();
        void waker.started()?.then((one) => one.close());
      };
    };
    for (const session of sessions.keys()) sessions.set(session, attach(session));
    started = jobs;
    return { jobs, attach };
  });
  const background: Background = { run: async (command, ctx) => await (await loaded.get()).jobs.run(command, ctx) };
  const opened: OpenedJobs = {
    get: async () => (await loaded.get()).jobs,
    started: () => started,
    beginTurns: () => {
      inRepl = true;
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
  return { jobs: opened, background };
}

function schedule(callback: () => void, delayMs: number): () => void {
  const timer = setTimeout(callback, Math.min(delayMs, longestTimerMs));
  return () => {
    clearTimeout(timer);
  };
}

/** Returns notes for the model about jobs that an earlier run of the program has left open in the record. */
async function jobNotes(jobs: OpenedJobs, events: readonly Event[]): Promise<readonly string[]> {
  if (!events.some(startedJob)) return [];
  const { lostNote, recordedJobs } = await loadJobs();
  const running = new Set((jobs.started()?.list() ?? []).flatMap(({ id, end }) => (end === null ? [id] : [])));
  const lost = recordedJobs(events).open.filter((id) => !running.has(id));
  return lost.length === 0 ? [] : [lostNote(lost)];
}

function startedJob({ kind, data }: Event): boolean {
  return kind === 'tool_result' && isRecord(data) && data.name === 'bash' && String(data.output).includes('"job":');
}

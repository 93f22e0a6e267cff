import type { Feature } from '../../kernel/console/feature.js';
import { taskTableSet } from './task-tables.js';

const load = () => import('./scheduled-tasks-commands.js');

/** Reminders and scheduled tasks. */
export const scheduledTasks: Feature = {
  name: 'scheduled-tasks',
  toolsets: [
    {
      name: 'tasks',
      on: false,
      about: 'Offer reminders and scheduled tasks.',
      guidance: 'A task runs later, without this conversation: put all it needs into execution_data.',
      tools: ['add_reminder', 'add_recurring_task', 'list_tasks', 'cancel_task'],
      load: async ({ ports, settings, model }) =>
        (await import('./schedule-tools.js')).scheduleTools({
          tasks: async () => await (await ports()).tables(taskTableSet),
          now: Date.now,
          zone: () => settings.config.tasks.timezone ?? Intl.DateTimeFormat().resolvedOptions().timeZone,
          unpriced: () => model.unpriced(),
          hide: (value) => settings.guard.deep(value),
        }),
    },
  ],
  openRepl: async (host) => (await import('./repl-tasks.js')).openReplTasks(host),
  commands: [
    {
      heading: 'Tasks:',
      entries: [
        {
          line: ['tasks', 'Scheduled tasks: list, show, run, pause, remove'],
          slash: ['tasks [command] [task or run]', 'Reminders and scheduled tasks: list, show, run, pause, inbox, …'],
          load: async () => (await load()).tasks,
        },
        {
          line: ['tasks list', 'List tasks by their next run'],
          load: async () => (await load()).listTasks,
        },
        {
          line: ['tasks show <task>', 'Show a task and its last runs'],
          load: async () => (await load()).showTask,
        },
        {
          line: ['tasks run <task>', 'Run a task now'],
          load: async () => (await load()).runTask,
        },
        {
          line: ['tasks pause <task>', 'Pause a task'],
          load: async () => (await load()).pauseTask,
        },
        {
          line: ['tasks resume <task>', 'Resume a task, also after its end'],
          load: async () => (await load()).resumeTask,
        },
        {
          line: ['tasks rm <task>', 'Delete a task'],
          load: async () => (await load()).removeTask,
        },
        {
          line: ['tasks inbox', 'Show results you have not seen'],
          load: async () => (await load()).taskInbox,
        },
        {
          line: ['tasks runs [task]', 'List runs and their results, newest first'],
          load: async () => (await load()).listRuns,
        },
        {
          line: ['tasks approve <run>', 'Approve the call that a run asked for, and run it'],
          load: async () => (await load()).approveRun,
        },
        {
          line: ['tasks run-due', 'Run the tasks that are due, and exit'],
          load: async () => (await load()).runDueTasks,
        },
        {
          line: ['tasks timer <kind>', 'Print a timer for systemd, launchd or cron that runs due tasks'],
          load: async () => (await load()).printTimer,
        },
        {
          line: ['tasks daemon', 'Run due tasks until stopped'],
          load: async () => (await load()).taskDaemon,
        },
      ],
    },
  ],
};

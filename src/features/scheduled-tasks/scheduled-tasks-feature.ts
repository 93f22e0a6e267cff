import type { Feature } from '../../kernel/console/feature.js';
import { taskTableSet } from './task-tables.js';
import { loadTasks, openReplTasks } from './scheduled-tasks-start.js';

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
        (await loadTasks()).scheduleTools({
          tasks: async () => await (await ports()).tables(taskTableSet),
          now: Date.now,
          zone: () => settings.config.tasks.timezone ?? Intl.DateTimeFormat().resolvedOptions().timeZone,
          unpriced: () => model.unpriced(),
          hide: (value) => settings.guard.deep(value),
        }),
    },
  ],
  openRepl: (host) => Promise.resolve(openReplTasks(host)),
  commands: [
    {
      heading: 'Tasks:',
      entries: [
        {
          line: ['tasks', 'Scheduled tasks: list, show, run, pause, remove'],
          slash: [
            'tasks [command] [task or run]',
            'Background commands and scheduled tasks: list, show, run, pause, …',
            'tools',
          ],
          also: 'cron reminders remind schedule loop timers',
          load: async () => (await loadTasks()).tasks,
        },
        {
          slash: [
            'schedule [command] [task or run]',
            'Reminders and scheduled tasks: list, show, run, pause, inbox, …',
            'tools',
          ],
          also: 'later',
          load: async () => (await loadTasks()).schedule,
        },
        {
          line: ['tasks list', 'List tasks by their next run'],
          load: async () => (await loadTasks()).listTasks,
        },
        {
          line: ['tasks show <task>', 'Show a task and its last runs'],
          load: async () => (await loadTasks()).showTask,
        },
        {
          line: ['tasks run <task>', 'Run a task now'],
          load: async () => (await loadTasks()).runTask,
        },
        {
          line: ['tasks pause <task>', 'Pause a task'],
          load: async () => (await loadTasks()).pauseTask,
        },
        {
          line: ['tasks resume <task>', 'Resume a task, also after its end'],
          load: async () => (await loadTasks()).resumeTask,
        },
        {
          line: ['tasks rm <task>', 'Delete a task'],
          load: async () => (await loadTasks()).removeTask,
        },
        {
          line: ['tasks inbox', 'Show results you have not seen'],
          load: async () => (await loadTasks()).taskInbox,
        },
        {
          line: ['tasks runs [task]', 'List runs and their results, newest first'],
          load: async () => (await loadTasks()).listRuns,
        },
        {
          line: ['tasks approve <run>', 'Approve the call that a run asked for, and run it'],
          load: async () => (await loadTasks()).approveRun,
        },
        {
          line: ['tasks run-due', 'Run the tasks that are due, and exit'],
          load: async () => (await loadTasks()).runDueTasks,
        },
        {
          line: ['tasks timer <kind>', 'Print a timer for systemd, launchd or cron that runs due tasks'],
          load: async () => (await loadTasks()).printTimer,
        },
        {
          line: ['tasks daemon', 'Run due tasks until stopped'],
          load: async () => (await loadTasks()).taskDaemon,
        },
      ],
    },
  ],
};

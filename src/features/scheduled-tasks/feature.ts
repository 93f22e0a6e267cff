import type { Feature } from '../../kernel/console/feature.js';
import { taskTableSet } from './task-tables.js';

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
  commands: [
    {
      heading: 'Tasks:',
      entries: [
        {
          line: ['tasks', 'what is done at its time: list, show, run, pause, remove, fire'],
          slash: ['tasks [command] [task or run]', 'reminders and scheduled work: list, show, run, pause, inbox, …'],
          load: async () => (await import('./fire-tasks.js')).tasks,
        },
        {
          line: ['tasks list', 'the next one first'],
          load: async () => (await import('./manage-tasks.js')).listTasks,
        },
        {
          line: ['tasks show <task>', 'all that is known of it, and its last runs'],
          load: async () => (await import('./manage-tasks.js')).showTask,
        },
        {
          line: ['tasks run <task>', 'do it now, whatever its schedule says'],
          load: async () => (await import('./fire-tasks.js')).runTask,
        },
        {
          line: ['tasks pause <task>', 'leave it out until it is resumed'],
          load: async () => (await import('./manage-tasks.js')).pauseTask,
        },
        {
          line: ['tasks resume <task>', 'go on with its next time, and keep it beyond its end'],
          load: async () => (await import('./manage-tasks.js')).resumeTask,
        },
        {
          line: ['tasks rm <task>', 'remove it'],
          load: async () => (await import('./manage-tasks.js')).removeTask,
        },
        {
          line: ['tasks inbox', 'what came of tasks and you were not told yet'],
          load: async () => (await import('./manage-tasks.js')).taskInbox,
        },
        {
          line: ['tasks runs [task]', 'what came of each run, newest first'],
          load: async () => (await import('./manage-tasks.js')).listRuns,
        },
        {
          line: [
            'tasks approve <run>',
            'show the call that a run wanted a yes for, allow this task exactly that, and run it',
          ],
          load: async () => (await import('./fire-tasks.js')).approveRun,
        },
        {
          line: ['tasks run-due', 'fire what is due, and end'],
          load: async () => (await import('./fire-tasks.js')).runDueTasks,
        },
        {
          line: ['tasks timer <kind>', 'print what makes systemd, launchd or cron fire tasks each minute'],
          load: async () => (await import('./fire-tasks.js')).printTimer,
        },
        {
          line: ['tasks daemon', 'fire tasks until it is ended'],
          load: async () => (await import('./fire-tasks.js')).taskDaemon,
        },
      ],
    },
  ],
};

import { type Tasks, unseenRuns } from './tasks.js';
import { type CommandLine, exit, type CommandHandler } from '../../kernel/console/command.js';
import { countOption, printJson, printListing } from '../../kernel/console/line-output.js';
import {
  type TaskAction,
  changes,
  findTask,
  formatTaskList,
  ranLines,
  readInbox,
  runAsJson,
  runsOf,
  formatTask,
  taskAsJson,
} from './found-tasks.js';
import { taskTableSet } from './task-tables.js';

interface Options {
  readonly json?: boolean;
  readonly all?: boolean;
  readonly limit?: string;
}

const json: NonNullable<CommandHandler['line']>['options'] = (command) => command.option('--json', 'as JSON');
/** Runs of a listing. */
const shownRuns = 50;

export const listTasks: CommandHandler = {
  line: {
    example: 'agent tasks list --json',
    options: (command) => command.option('--all', 'include past reminders').option('--json', 'all of them as JSON'),
    run: (line, _args, { json: asJson, all }: Options) =>
      withTasks(line, async (found) => {
        if (asJson) printJson(line.out, (await found.list()).map(taskAsJson), 2);
        else line.out.print(`${await formatTaskList(found, all === true)}\n`);
      }),
  },
};

export const showTask: CommandHandler = {
  line: {
    example: 'agent tasks show k3v9',
    options: json,
    run: (line, [id = ''], { json: asJson }: Options) =>
      withTasks(line, async (found) => {
        if (asJson) printJson(line.out, taskAsJson(await findTask(found, id)), 2);
        else line.out.print(`${(await formatTask(found, id)).join('\n')}\n`);
      }),
  },
};

export const listRuns: CommandHandler = {
  line: {
    example: 'agent tasks runs k3v9',
    options: (command) =>
      command.option('--limit <n>', `maximum number (default ${shownRuns})`).option('--json', 'one JSON array'),
    run: (line, [id = ''], options: Options) =>
      withTasks(line, async (found) => {
        const runs = await runsOf(found, id, countOption(options.limit, '--limit', shownRuns));
        if (options.json) printJson(line.out, runs.map(runAsJson), 2);
        else line.out.print(`${await ranLines(found, runs, 'No task has run yet.')}\n`);
      }),
  },
};

export const taskInbox: CommandHandler = {
  line: {
    example: 'agent tasks inbox',
    options: json,
    run: (line, _args, { json: asJson }: Options) =>
      withTasks(line, async (found) => {
        if (!asJson) {
          line.out.print(`${await readInbox(found)}\n`);
          return;
        }
        const runs = await unseenRuns(found);
        printListing(line.out, true, runs.map(runAsJson), () => []);
        await found.markSeen(runs.map(({ id }) => id));
      }),
  },
};

export const pauseTask: CommandHandler = changing('pause', 'agent tasks pause k3v9');
export const resumeTask: CommandHandler = changing('resume', 'agent tasks resume k3v9');
export const removeTask: CommandHandler = changing('rm', 'agent tasks rm k3v9');

function changing(change: TaskAction, example: string): CommandHandler {
  return {
    line: {
      example,
      run: (line, [id = '']) =>
        withTasks(line, async (found) => {
          line.out.print(`${await changes[change](found, id)}\n`);
        }),
    },
  };
}

async function withTasks(line: CommandLine, use: (found: Tasks) => Promise<void>): Promise<number> {
  return await line.withStore(async (opened) => {
    await use(await opened.tables(taskTableSet));
    return exit.done;
  });
}

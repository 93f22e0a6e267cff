import { streamSchema } from '../kernel/core/stream-lines.js';
import { exit, type CommandHandler } from '../kernel/console/command.js';
import { countOption, printJson } from '../kernel/console/line-output.js';

/** `agent acp`: an editor drives sessions over standard input and output. */
export const serveEditor: CommandHandler = {
  line: {
    example: 'agent acp',
    run: async ({ doors }) => await doors.editor(),
  },
};

/** `agent watch`: shows a session of another terminal live. */
export const watchSession: CommandHandler = {
  line: {
    example: 'agent watch --answer',
    options: (command) => command.option('--answer', 'answer its questions from here, too'),
    run: async ({ doors }, [session = null], { answer }) => await doors.watch({ session, answers: answer === true }),
  },
};

/** `agent attach`: shows a session that another process runs on this terminal. */
export const attachToSession: CommandHandler = {
  line: {
    example: 'agent attach',
    run: async ({ doors }, [session = null]) => await doors.attach(session),
  },
};

/** `agent schema`: what a program has to read that starts `agent -p --output-format stream-json`. */
export const showSchema: CommandHandler = {
  line: {
    example: 'agent schema > lines.schema.json',
    run: ({ out }) => {
      printJson(out, streamSchema, 2);
      return Promise.resolve(exit.done);
    },
  },
};

/** `agent serve`: the same in a browser, with the whole record, and for programs. */
export const servePages: CommandHandler = {
  line: {
    example: 'agent serve --port 7420',
    options: (command) =>
      command
        .option('--port <n>', 'on this port of 127.0.0.1; without it, on any free one')
        .option('--json', 'print the address and the token as one line of JSON'),
    run: async ({ doors }, _words, { port, json }) =>
      await doors.pages({ port: typeof port === 'string' ? countOption(port, '--port', 0) : 0, json: json === true }),
  },
};

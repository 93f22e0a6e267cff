import { createAgentSession, openRun } from '../../app/create-session.js';
import { readSettings } from '../../app/settings.js';
import type { AnsweredTurn, AnswerRequest } from '../../kernel/console/command.js';
import type { RootOptions } from '../../kernel/console/options.js';
import { printError } from '../../kernel/console/print.js';
import { createUsageMeter } from '../../kernel/console/usage-meter.js';
import { type EndingSignal, onEndingSignal, turnExitCode } from '../../ui/ending.js';
import { askForJson, readAnswerSchema } from './final-answer.js';
import { createErrorPrinter, describeFault } from './headless.js';

/** Runs one turn of a new session for a command that reads its answer. Throws a `CliError` where it cannot begin. */
export async function answerInJson(given: RootOptions, request: AnswerRequest): Promise<AnsweredTurn> {
  const { cwd, note, prompt, tools, underReview } = request;
  const options: RootOptions = {
    ...given,
    cwd,
    tools: tools.join(','),
    hooks: false,
    mcpConfig: [],
    strictMcpConfig: true,
  };
  const settings = { ...(await readSettings(options)), underReview };
  const schema = await readAnswerSchema(JSON.stringify(request.schema), cwd);
  const run = await openRun(settings, options);
  try {
    const chat = await createAgentSession(run, { continueNewest: false, resume: null, fork: false }, false);
    const { session } = chat;
    let signal: EndingSignal | null = null;
    onEndingSignal((name) => {
      signal ??= name;
      session.interrupt();
    });
    const meter = createUsageMeter();
    const toErrors = createErrorPrinter(given.verbose === true, 'json');
    session.subscribe((event) => {
      meter.see(event);
      toErrors(event);
    });
    for (const notice of [...run.notices(), ...chat.notices]) toErrors({ type: 'notice', ...notice });
    try {
      session.tell(note);
      const end = await askForJson(session, schema)(prompt);
      const unsaved = await chat.save();
      if (end.fault) printError(describeFault(end.fault));
      return {
        end,
        sessionId: session.id,
        events: session.events(),
        usage: meter.sum(),
        exitCode: turnExitCode(end, signal, unsaved),
      };
    } finally {
      await chat.close();
    }
  } finally {
    await run.close();
  }
}

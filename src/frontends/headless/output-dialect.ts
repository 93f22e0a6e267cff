import { CliError, exit } from '../../kernel/console/command.js';
import type { Question } from '../../kernel/core/policy.js';
import type { SessionPort } from '../../kernel/core/session-port.js';
import { didYouMean } from '../../kernel/core/text.js';
import { theirCall } from '../../kernel/tools/claude-dialect.js';
import { type Answered, type Ask, createTurnLines, type TurnLines, type TurnScene } from './headless.js';
import type { RootOptions } from '../../kernel/console/options.js';
import type { Run } from '../../app/create-session.js';
import { claudeMode } from '../../kernel/tools/claude-dialect.js';
import type { Settings } from '../../kernel/console/run-settings.js';
import { createClaudeLines, type Offers, offersOf } from './claude-lines.js';
import { askForJson, openAnswerFile, readAnswerSchema } from './final-answer.js';

const dialects = ['agent', 'claude'] as const;

/** The input and output of a run without a terminal, by its options. */
export interface FrontParts {
  readonly dialect: (typeof dialects)[number];
  /** `submit`: how a prompt is asked where no schema is given. */
  ask(session: SessionPort & { tell(note: string): void }, submit?: Ask): Ask;
  /** Returns `ask` with its last answer noted for `keep`. */
  keeping(ask: Ask): Ask;
  /** Returns what the first line of a turn lists of the run. */
  offers(run: Run, commands: () => Promise<readonly string[]>): Promise<Offers>;
  lines(scene: TurnScene, run: Pick<Run, 'policy' | 'settings'>, offers: Offers): TurnLines;
  /** A call by its name and arguments in the dialect. */
  named(question: Question, cwd: string): { readonly name: string; readonly input: Readonly<Record<string, unknown>> };
  /** Writes the last answer to the file that was asked for. Rejects with a `CliError` where it cannot be written. */
  keep(): Promise<void>;
}

/** Reads `--dialect`, `--json-schema` and `--output`. Throws a `CliError` (2) before anything is asked. */
export async function openFrontParts(options: RootOptions, { cwd }: Pick<Settings, 'cwd'>): Promise<FrontParts> {
  const dialect = dialects.find((known) => known === (options.dialect ?? 'agent'));
  if (dialect === undefined)
    throw new CliError(
      exit.usage,
      `--dialect: \`${options.dialect}\` is not known`,
      `${didYouMean(options.dialect ?? '', dialects)} Known: ${dialects.join(', ')}`.trim(),
    );
  const schema = options.jsonSchema === undefined ? null : await readAnswerSchema(options.jsonSchema, cwd);
  const file = options.output === undefined ? null : await openAnswerFile(options.output, cwd);
  let last: Answered | null = null;
  const keeping = (ask: Ask): Ask => {
    return async (prompt) => {
      last = await ask(prompt);
      return last;
    };
  };
  return {
    dialect,
    ask: (session, submit = (prompt) => session.submit(prompt)) =>
      keeping(schema ? askForJson(session, schema) : submit),
    keeping,
    offers: async (run, commands) => (dialect === 'claude' ? await offersOf(run, await commands()) : {}),
    lines: (scene, { policy, settings }, offers) =>
      dialect === 'claude'
        ? createClaudeLines(scene, {
            mode: () => claudeMode(policy),
            outputStyle: settings.config.request.outputStyle,
            offers,
          })
        : createTurnLines(scene),
    named: ({ call: { tool, args } }, at) => {
      if (dialect !== 'claude') return { name: tool.name, input: args };
      const { tool_name: name, tool_input: input } = theirCall({ tool: tool.name, args }, at);
      return { name, input };
    },
    keep: async () => {
      if (last) await file?.write(last);
    },
  };
}

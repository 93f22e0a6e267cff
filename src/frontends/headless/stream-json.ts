import { CliError, exit } from '../../kernel/console/command.js';
import { type LoadedOnce, loadOnce } from '../../kernel/core/runtime.js';
import { isCommandLine } from '../../kernel/console/slash-command.js';
import type { Ask } from './headless.js';
import type { ModelRef } from '../../kernel/core/projection.js';
import type { RootOptions } from '../../kernel/console/options.js';
import { createAgentSession, type Assembly, openRun, type Run } from '../../app/create-session.js';
import type { SessionChoice } from '../../kernel/console/run-settings.js';
import { recordEffort } from '../../app/context-files.js';
import { resolveModel } from '../../app/model-resolution.js';
import { withSystemPrompt } from '../../app/settings.js';
import type { Settings } from '../../kernel/console/run-settings.js';
import { type FrontParts, openFrontParts } from './output-dialect.js';
import type { SlashTurns } from './slash-turn.js';
import { type Controls, type StreamConversation, runStreamInput } from './stream-input.js';

export { openFrontParts } from './output-dialect.js';

/** `--input-format stream-json`: the other program says on standard input what is to be done. Returns the exit code. */
export async function converse(
  words: readonly string[],
  options: RootOptions,
  settings: Settings,
  choice: SessionChoice,
): Promise<number> {
  checkOptions(words, options);
  const parts = await openFrontParts(options, settings);
  const run = await openRun(settings, options);
  const asks = options.permissionPromptTool !== undefined;
  let chat: Assembly | null = null;
  try {
    const code = await runStreamInput({
      input: process.stdin,
      begin: async (systemPrompt) => {
        chat = await createAgentSession(prompted(run, systemPrompt), choice, asks);
        return await conversation(run, chat, parts);
      },
      controls: controlsOf(run, () => chat),
      attach: async (bytes) => await run.pictures.takeBytes({ name: 'picture', bytes }),
      asks,
      named: (question) => parts.named(question, settings.cwd),
      announcesTurns: parts.dialect === 'claude',
      verbose: options.verbose === true && parts.dialect === 'agent',
    });
    await parts.keep();
    return code;
  } finally {
    await (chat as Assembly | null)?.close();
    await run.close();
  }
}

function checkOptions(words: readonly string[], { outputFormat, image = [], goal }: RootOptions): void {
  if (goal !== undefined)
    throw new CliError(
      exit.usage,
      '--goal does not go with --input-format stream-json',
      'Give the goal to a separate run: agent -p --goal "all tests pass".',
    );
  if (outputFormat !== 'stream-json')
    throw new CliError(
      exit.usage,
      `--input-format stream-json answers as stream-json, not as ${outputFormat}`,
      'Add --output-format stream-json.',
    );
  if (words.length > 0)
    throw new CliError(
      exit.usage,
      'with --input-format stream-json, send the prompt on standard input',
      'Send {"type":"user","message":{"role":"user","content":"…"}} as a line.',
    );
  if (image.length > 0)
    throw new CliError(
      exit.usage,
      'with --input-format stream-json, send images on standard input, not with --image',
      'Send a content block: {"type":"image","source":{"type":"base64","media_type":"image/png","data":"…"}}.',
    );
}

/** Appends the text that the other program adds to the user's own system prompt. */
function prompted(run: Run, added: string | null): Run {
  if (added === null) return run;
  const own = run.settings.config.request.systemPrompt;
  const systemPrompt = [own, added].filter((part) => part !== null && part !== '').join('\n\n');
  return { ...run, settings: withSystemPrompt(run.settings, systemPrompt) };
}

async function conversation(run: Run, chat: Assembly, parts: FrontParts): Promise<StreamConversation> {
  const { session, notices, save } = chat;
  const toolNames = run.toolbox.registry.list().map((tool) => tool.name);
  const now = (): number => performance.now();
  const turns = loadOnce(async () => (await import('./slash-turn.js')).openSlashTurns(run, chat));
  const offers = await parts.offers(run, async () => await (await turns.get()).names('input'));
  return {
    session,
    ask: askOrRun(chat, parts, turns),
    save,
    lines: () => parts.lines({ session, toolNames, directories: run.policy.directories, now }, run, offers),
    notices: [...run.notices(), ...notices],
  };
}

/** Returns what answers a message: the model, or the slash command that it names. One that does not run here fails its
 * turn, and no model reads it. */
function askOrRun(chat: Assembly, parts: FrontParts, turns: LoadedOnce<SlashTurns>): Ask {
  const ask = parts.ask(chat.session);
  return async (text) => {
    if (!isCommandLine(text)) return await ask(text);
    try {
      const command = await (await turns.get()).find(text, 'input', ask);
      return await (command === null ? ask : parts.keeping(command))(text);
    } catch (error) {
      if (!(error instanceof CliError)) throw error;
      const { message, hint } = error;
      return {
        status: 'failed',
        text: '',
        turns: 0,
        toolCalls: 0,
        denials: [],
        fault: { code: 'bad_request', message, hint },
      };
    }
  };
}

function controlsOf({ settings, policy, toolbox }: Run, chat: () => Assembly | null): Controls {
  let first: ModelRef | null = null;
  const configured = policy.mode();
  const style = settings.config.request.outputStyle ?? 'default';
  return {
    setModel: async (name) => {
      const session = chat()?.session;
      if (!session) return 'the session has not started';
      first ??= session.ref();
      if (name === null) {
        await session.switchModel(first);
        return null;
      }
      const resolved = await resolveModel(settings, name, session.ref());
      if (!resolved.ok) return `${resolved.problem.message}: ${resolved.problem.hint}`;
      await session.switchModel(resolved.ref);
      if (resolved.effort !== undefined) await recordEffort(session, settings, toolbox.registry, resolved.effort);
      return null;
    },
    setMode: (mode) => {
      if (mode === 'bypassPermissions' && configured !== 'never')
        return 'bypassPermissions needs a run started with --approval never';
      if (!['default', 'acceptEdits', 'plan', 'bypassPermissions'].includes(mode))
        return `the mode ${mode} is not supported; use default, acceptEdits, plan or bypassPermissions`;
      policy.plan(mode === 'plan');
      policy.switchTo(mode === 'default' && configured === 'never' ? 'dangerous' : configured);
      return null;
    },
    facts: () => ({
      commands: [],
      agents: [],
      output_style: style,
      available_output_styles: [...new Set(['default', style])],
      models: [],
      account: {},
      tools: toolbox.registry.list().map((tool) => tool.name),
      pid: process.pid,
    }),
  };
}

import { parseJson } from '../../core/json.js';
import { largestOf } from '../../core/lists.js';
import { isError, type OutputEnvelope, parseEnvelope } from '../../core/envelope.js';
import { isRecord } from '../../core/json.js';
import type { AnsweredCall, Conversation, Message } from '../../core/projection.js';
import type { ModelChunk, ModelRequest, Provider } from '../../core/provider.js';
import { withoutEnd, firstLine } from '../../core/text.js';
import { suggestedProvider } from '../catalog.js';
import { usesText } from '../quirks.js';
import { type IsInstalled, type OfflineCall, readRequest } from './plain-requests.js';
import { isScript, playTurn, readScript, textChunks } from './script.js';
import { createTextStep, schemasOf } from '../text/protocol.js';

export { isScript, readScript, shippedScripts } from './script.js';

const { key: suggestedKey } = suggestedProvider();

const intro = [
  'I am the offline provider built into this program:',
  'no language model and no network, only a few fixed phrases. I understand',
].join(' ');
const limits = [
  "and several of them joined with `then`. I can't do anything else.",
  'To connect a model, type `/login` in the REPL or run `agent login`; or set a key and start again:',
].join(' ');
const others = [
  'or start Ollama or LM Studio on this machine: `agent --model ollama/<model>`.',
  '`agent providers` lists the other providers, their keys and what is set.',
].join(' ');
/** Help of the embedded provider: its requests, and how to connect a model. */
const offlineHelp = `${intro}

- \`list **/*.ts\`, \`find *.md in docs\`, \`list python files\`
- \`read README.md\`, \`show me package.json\`
- \`grep TODO in src\`, \`search for "main" in src\`
- \`run npm test\`, or \`run\` and any command in backticks
- \`write hello to notes.txt\`, \`write "two words" to notes.txt\`, \`replace hello with goodbye in notes.txt\`
- \`remind me in 20 minutes to look at the oven\` (with \`--tools +tasks\`), \`remember that the port is 5433\` (with \`--tools +memory\`)

${limits}

    export ${suggestedKey}=…
    agent

${others}`;

/** Follows the first answer of a session with tool calls, so that no person takes this for a model. */
const offlineNote = [
  'This was the built-in offline provider, not a language model;',
  `type /login or set ${suggestedKey} (or the key of another provider) to connect one.`,
].join(' ');

/** Hint for a program without a connected model. */
const connectHint = [
  `Set the key of a provider (for example ${suggestedKey}), run agent login, start Ollama, or name a model with -m;`,
  '`agent providers` shows what is set, and -m offline asks for the offline provider.',
].join(' ');

export interface OfflineDependencies {
  /** Absolute; script paths start here. */
  readonly cwd: string;
  /** Returns early, without an error, once `signal` is aborted. */
  readonly sleep: (delayMs: number, signal: AbortSignal) => Promise<void>;
  readonly isInstalled: IsInstalled;
  /** True where this provider was not chosen and no person reads along: a request that it does not understand then
   * fails, where help would be the answer otherwise. */
  readonly standsIn?: boolean;
}

/** Creates the embedded provider: no model, no network. The same conversation gives the same answer. A model id that
 * names a script plays that instead (docs/offline-script.md). Source: contracts 7. */
export function createOfflineProvider(d: OfflineDependencies): Provider {
  return {
    async *stream(request) {
      if (!isScript(request.ref.model)) {
        yield* answer(request, d);
        return;
      }
      const script = await readScript(request.ref.model, d.cwd);
      if (!script.ok) {
        yield { type: 'fault', fault: script.fault };
        return;
      }
      // A script may write its calls as text, like the models that it plays.
      const step = usesText(request.conversation, {}) ? await textStep(request.conversation) : null;
      for await (const chunk of playTurn(script.script, request, d.sleep)) yield* step === null ? [chunk] : step(chunk);
    },
  };
}

async function textStep(conversation: Conversation): Promise<(chunk: ModelChunk) => readonly ModelChunk[]> {
  return createTextStep(schemasOf(conversation));
}

const notUnderstood: ModelChunk = {
  type: 'fault',
  fault: {
    code: 'auth',
    message: 'no model is connected, and the built-in offline provider does not understand this request',
    hint: connectHint,
  },
};

function* answer(request: ModelRequest, { isInstalled, standsIn = false }: OfflineDependencies): Generator<ModelChunk> {
  const { conversation } = request;
  const { asked, answers } = lastTurn(conversation.messages);
  const steps = readRequest(asked, isInstalled);
  if (steps === null && standsIn) {
    yield notUnderstood;
    return;
  }
  const next = request.toolChoice === 'none' ? undefined : steps?.[answers.length];
  const missing = next?.find((call) => !conversation.tools.some((tool) => tool.name === call.name));
  if (next !== undefined && missing === undefined) {
    yield* callTools(next, conversation, request.signal);
    return;
  }
  const said =
    missing === undefined
      ? closingWords(answers.at(-1), conversation.messages)
      : `That needs the tool \`${missing.name}\`, which is disabled in this session.${howToEnable(missing.name)}`;
  for (const chunk of textChunks('text', said)) {
    if (request.signal.aborted) return;
    yield chunk;
  }
  yield free;
  yield { type: 'end', stop: 'stop' };
}

/** Says how a tool of a set is enabled, for the sets that the phrases use. */
function howToEnable(tool: string): string {
  const set = { add_reminder: 'tasks', save_note: 'memory' }[tool];
  return set === undefined ? '' : ` \`/tools +${set}\` in the REPL or \`--tools +${set}\` enables it.`;
}

function closingWords(last: Message | undefined, messages: readonly Message[]): string {
  if (last?.role !== 'assistant') return offlineHelp;
  return summarise(last.calls) + (isFirst(messages) ? `\n\n${offlineNote}` : '');
}

const free: ModelChunk = { type: 'usage', usage: { input: 0, cacheRead: 0, cacheWrite: 0, output: 0 }, costUsd: 0 };

function* callTools(
  calls: readonly OfflineCall[],
  conversation: Conversation,
  signal: AbortSignal,
): Generator<ModelChunk> {
  if (signal.aborted) return;
  const made = conversation.messages.reduce(
    (sum, message) => sum + (message.role === 'assistant' ? message.calls.length : 0),
    0,
  );
  for (const [index, call] of calls.entries()) {
    yield {
      type: 'tool_call',
      call: { id: `offline_${made + index + 1}`, name: call.name, arguments: JSON.stringify(call.args) },
    };
  }
  yield free;
  yield { type: 'end', stop: 'tool' };
}

/** Returns the newest request and the responses since. A message that the user adds during a turn is a request of its
 * own. */
function lastTurn(messages: readonly Message[]): { readonly asked: string; readonly answers: readonly Message[] } {
  const at = messages.findLastIndex((message) => message.role === 'user');
  const user = messages[at];
  return { asked: user?.role === 'user' ? user.content : '', answers: messages.slice(at + 1) };
}

function isFirst(messages: readonly Message[]): boolean {
  return messages.filter((message) => message.role === 'user').length === 1;
}

const shownLines = 20;

/** Describes the results of the calls of one response to the reader. */
function summarise(calls: readonly AnsweredCall[]): string {
  return calls.map(sentence).join('\n\n');
}

function sentence(call: AnsweredCall): string {
  const envelope = parseEnvelope(call.result.output);
  const args = argumentsOf(call);
  if (isError(envelope)) return `\`${call.name}\` did not work: ${envelope.error}`;
  if (envelope.test_mode === true) return `\`${call.name}\` was not run, because test mode is on.`;
  const say = sayings[call.name];
  return say === undefined ? `\`${call.name}\` answered:\n${excerpt(envelope.output)}` : say(envelope, args);
}

type Arguments = Readonly<Record<string, unknown>>;

const sayings: Readonly<Record<string, (envelope: OutputEnvelope, args: Arguments) => string>> = {
  glob: (envelope, args) =>
    counted(
      envelope,
      `No file matches \`${text(args.pattern)}\`.`,
      (n) => `${n === 1 ? '1 file matches' : `${n} files match`} \`${text(args.pattern)}\`:`,
    ),
  grep: (envelope, args) =>
    counted(
      envelope,
      `No line matches \`${text(args.pattern)}\`.`,
      (n) => `${n === 1 ? '1 line matches' : `${n} lines match`} \`${text(args.pattern)}\`:`,
    ),
  file_read: (envelope, args) => {
    const lines = typeof envelope.total_lines === 'number' ? envelope.total_lines : countLines(envelope.output);
    return lines === 0
      ? `\`${text(args.path)}\` is empty.`
      : `\`${text(args.path)}\` has ${lines} ${lines === 1 ? 'line' : 'lines'}:\n${excerpt(envelope.output)}`;
  },
  file_write: (envelope) => `${envelope.output}.`,
  file_edit: (envelope) => `${envelope.output}.`,
  add_reminder: (envelope) => envelope.output,
  save_note: (envelope) => envelope.output,
  bash: (envelope, args) => {
    if (envelope.running === true) return `\`${firstLine(text(args.command), 80)}\` continues in the background.`;
    const ended = envelope.exit_code === 0 ? 'succeeded' : `ended with exit code ${JSON.stringify(envelope.exit_code)}`;
    return envelope.output.trim() === ''
      ? `\`${firstLine(text(args.command), 80)}\` ${ended} without output.`
      : `\`${firstLine(text(args.command), 80)}\` ${ended}:\n${excerpt(envelope.output)}`;
  },
};

function counted(envelope: OutputEnvelope, none: string, head: (count: number) => string): string {
  const count = typeof envelope.count === 'number' ? envelope.count : countLines(envelope.output);
  return count === 0 ? none : `${head(count)}\n${excerpt(envelope.output)}`;
}

function excerpt(output: string): string {
  const lines = withoutEnd(output, '\n').split('\n');
  const rest = lines.length - shownLines;
  const shown = lines.slice(0, shownLines).map((line) => firstLine(line, 200));
  const longest = largestOf(
    [...output.matchAll(/`{3,}/g)].map((run) => run[0].length),
    2,
  );
  const fence = '`'.repeat(longest + 1);
  const more = rest > 0 ? [`… ${rest} more ${rest === 1 ? 'line' : 'lines'}`] : [];
  return [fence, ...shown, ...more, fence].join('\n');
}

function countLines(output: string): number {
  return output === '' ? 0 : output.replace(/\n$/, '').split('\n').length;
}

function argumentsOf(call: AnsweredCall): Arguments {
  try {
    const value: unknown = parseJson(call.arguments);
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

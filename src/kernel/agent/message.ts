import { clampText, type ErrorCode, isError } from '../core/envelope.js';
import type { MessageSource, ToolCallData } from '../core/event.js';
import { addAll } from '../core/lists.js';
import type { KeptAttachments } from '../core/files/attached-formats.js';
import type { Expand, Expansion, ExpansionCall, SentBy, TurnEnd } from '../core/session-port.js';
import type { Denial, MatchedFile } from '../core/tool.js';
import { firstLine, withoutEnd } from '../core/text.js';
import { messageData, recordUser } from './attached-files.js';
import type { TurnDeps } from './dependencies.js';
import { dispatch, type Dispatched } from './dispatch.js';
import { answer, uniqueId, withAgents } from './turn.js';

/** Most bytes of one output in a message. */
const maxOutputBytes = 32 * 1024;

/** A command or a skill, an agent, what a server has, and a folder. */
const mayExpand = /^[/$]|(?:^|[\s(])@\S/;

interface Message {
  readonly text: string;
  readonly expand: Expand | undefined;
  readonly source?: MessageSource;
}

/** Records the message of the user. The text of a command is made first, for which calls may run. Returns how the
 * turn ended where the message was not recorded: a call was refused or could not be made, or the user interrupted. */
export async function recordMessage(
  d: TurnDeps,
  { text, expand, source }: Message,
  signal: AbortSignal,
): Promise<TurnEnd | null> {
  const expansion = mayExpand.test(text) ? ((await expand?.(text)) ?? null) : null;
  if (typeof expansion === 'string') return unsent(expansion);
  const from = source ? { source } : {};
  if (expansion !== null) return await recordExpanded(d, text, expansion, from, signal);
  await recordUser(d, { content: text, typed: text, ...(source ? { data: from } : {}) });
  return null;
}

async function recordExpanded(
  d: TurnDeps,
  typed: string,
  expansion: Expansion,
  from: Pick<Message, 'source'>,
  signal: AbortSignal,
): Promise<TurnEnd | null> {
  const { notice, command, turn } = expansion;
  if (command && turn) await d.turnSettings?.begin(turn, { name: command.name, sha256: command.sha256 });
  if (notice) d.emit({ type: 'notice', level: 'info', code: 'command', message: notice });
  const ran = await runCalls(d, expansion, signal);
  if ('status' in ran) return ran;
  const content = await contentOf(d, expansion, ran.outputs, signal);
  if (typeof content !== 'string') return content;
  const data = command ? { command, ...from } : { typed, ...from };
  await recordUser(d, { content, typed, data, kept: ran.kept });
  return null;
}

/** Returns the text for the model. Where a sub-agent does the work, it has the report of the sub-agent. */
async function contentOf(
  d: TurnDeps,
  expansion: Expansion,
  outputs: readonly string[],
  signal: AbortSignal,
): Promise<string | TurnEnd> {
  const { command, delegate } = expansion;
  const written = expansion.text(outputs);
  if (delegate === undefined || command === null) return written;
  const name = `/${command.name} ${command.args}`.trimEnd();
  const order = { agent: delegate, prompt: written, description: firstLine(name, 60) };
  const ran = await runCalls(d, { command, calls: [{ name: 'agent', arguments: JSON.stringify(order) }] }, signal);
  if ('status' in ran) return ran;
  return `${name}\n\nReport of ${delegate}:\n${withoutEnd(ran.outputs.join('\n'), '\n')}`;
}

/** The outputs of the calls of a message, and their files. */
interface CallOutputs {
  readonly outputs: readonly string[];
  readonly kept: KeptAttachments | null;
}

async function runCalls(
  d: TurnDeps,
  { command, calls }: Pick<Expansion, 'command' | 'calls'>,
  signal: AbortSignal,
): Promise<CallOutputs | TurnEnd> {
  const outputs: string[] = [];
  const files: MatchedFile[] = [];
  const subject = command ? `/${command.name}` : 'The message';
  for (const call of calls) {
    const done = await runCall(d, call, signal);
    if (signal.aborted) return { status: 'interrupted', text: '', turns: 0, toolCalls: outputs.length, denials: [] };
    if (!done.ok) return unsent(`${subject} was not sent: ${done.problem}`, done.denials);
    if (done.failure !== null) d.emit({ type: 'notice', level: 'warn', code: 'command', message: done.failure });
    outputs.push(done.output);
    addAll(files, done.files);
  }
  const kept = files.length === 0 ? null : ((await d.attachments?.keep(files)) ?? null);
  if (kept && kept.refused.length > 0) return unsent(`${subject} was not sent: ${kept.refused.join(' ')}`);
  return { outputs, kept };
}

/** Records a message that a part of the program sends, as it is. */
export async function recordSent(
  d: TurnDeps,
  text: string,
  { source, note, id }: SentBy,
  signal: AbortSignal,
): Promise<null> {
  if (!note) {
    await recordDelivered(d, { text, ...messageData(source, id) }, signal);
    return null;
  }
  await recordUser(d, { content: text, typed: '', data: { note: true, ...messageData(source, id) } });
  return null;
}

/** Records a message that waited, or that came from elsewhere. It is on the disk before the sub-agents that it names do
 * their tasks, so it is delivered once, whatever happens meanwhile. A note has their reports. */
export async function recordDelivered(
  d: TurnDeps,
  { text, ...data }: { readonly text: string; readonly source?: MessageSource; readonly message_id?: string },
  signal: AbortSignal,
): Promise<void> {
  await recordUser(d, { content: text, typed: text, data });
  const named = mayExpand.test(text) ? ((await d.mentions?.(text)) ?? null) : null;
  if (named === null) return;
  const warn = (message: string): void => {
    d.emit({ type: 'notice', level: 'warn', code: 'agent_task', message });
  };
  if (typeof named === 'string') {
    warn(named);
    return;
  }
  const ran = await runCalls(d, named, signal);
  if ('status' in ran) {
    if (ran.fault) warn(ran.fault.message);
    return;
  }
  const content = named.text(ran.outputs).slice(text.length).trim();
  await recordUser(d, { content, typed: '', data: { note: true }, kept: ran.kept });
}

function unsent(message: string, denials: readonly Denial[] = []): TurnEnd {
  const hint = 'Correct what it names, or send another message.';
  return { status: 'failed', text: '', turns: 0, toolCalls: 0, denials, fault: { code: 'bad_request', message, hint } };
}

type Done =
  /** `failure` says how a call failed whose errors stand in the output. */
  | {
      readonly ok: true;
      readonly output: string;
      readonly failure: string | null;
      readonly files: readonly MatchedFile[];
    }
  | { readonly ok: false; readonly problem: string; readonly denials: readonly Denial[] };

async function runCall(d: TurnDeps, given: ExpansionCall, signal: AbortSignal): Promise<Done> {
  if (!given.tool && !d.tools.registry.get(given.name))
    return { ok: false, denials: [], problem: `it needs the tool ${given.name}, which is disabled here.` };
  const { content, done } = await runOwnCall(d, given, signal);
  const { envelope, attachments: files = [] } = done.outcome;
  if (given.tool && isError(envelope))
    return { ok: false, denials: done.denials, problem: `${content}: ${envelope.error}` };
  return toDone(content, done, files);
}

/** Takes a call of a command on the way of every call: through policy, with its record. */
export async function runOwnCall(
  d: TurnDeps,
  given: ExpansionCall,
  signal: AbortSignal,
): Promise<{ readonly id: string; readonly content: string; readonly done: Dispatched }> {
  const { registry } = d.tools;
  const id = uniqueId(d, `command_${d.record.lastSeq() + 1}`);
  const { name, arguments: args, tool } = given;
  const binding = await (tool ? registry.bindOwn(tool, args) : registry.bind({ name, arguments: args }));
  const content = binding.ok
    ? binding.bound.tool.describe(d.secrets?.deep(binding.bound.args) ?? binding.bound.args)
    : name;
  const made = { name, arguments: args };
  const data: ToolCallData = { id, type: 'function', function: made, response_id: id, by: 'command' };
  const recorded = await d.record.note({ kind: 'tool_call', content, data });
  const call = recorded.data as ToolCallData;
  const done = await dispatch(withAgents(d), { call, content: String(recorded.content), binding }, signal);
  // Files for the message are kept with the message alone.
  const { attachments: _, ...outcome } = done.outcome;
  await answer(d, call, tool ? { ...done, outcome } : done);
  return { id: call.id, content, done };
}

/** A command that failed has its errors in the message, where the model reads them, as with other agents. What was
 * refused ends the message. */
function toDone(title: string, { outcome: { envelope }, denials }: Dispatched, files: readonly MatchedFile[]): Done {
  if (isError(envelope)) {
    const problem = `${title}: ${envelope.error}`;
    if (denials.length > 0 || refusals.has(envelope.code)) return { ok: false, denials, problem };
    return {
      ok: true,
      output: `[${envelope.error}]`,
      failure: `${problem} The message contains the error.`,
      files: [],
    };
  }
  const { output, exit_code: exitCode } = envelope;
  const { text } = clampText(output, maxOutputBytes);
  if (typeof exitCode !== 'number' || exitCode === 0) return { ok: true, output: text, failure: null, files };
  const failure = `${title} ended with ${exitCode}. The message contains its output.`;
  return {
    ok: true,
    output: `${text}${text === '' || text.endsWith('\n') ? '' : '\n'}[exit code ${exitCode}]`,
    failure,
    files,
  };
}

const refusals: ReadonlySet<string> = new Set<ErrorCode>([
  'permission_denied',
  'denied_by_user',
  'unknown_tool',
  'invalid_args',
  'limit_reached',
  'cancelled',
  'interrupted',
]);

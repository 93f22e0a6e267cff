import type { AnsweredCall } from '../../core/projection.js';
import { isError, parseEnvelope, type OutputEnvelope } from '../../core/envelope.js';
import { isRecord } from '../../core/json.js';
import { firstLine } from '../../core/text.js';

const shownLines = 20;

/** What came of the calls of one response, for the reader. */
export function summarise(calls: readonly AnsweredCall[]): string {
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
  bash: (envelope, args) => {
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
  const lines = output.replace(/\n+$/, '').split('\n');
  const rest = lines.length - shownLines;
  const shown = lines.slice(0, shownLines).map((line) => firstLine(line, 200));
  const longest = Math.max(2, ...[...output.matchAll(/`{3,}/g)].map((run) => run[0].length));
  const fence = '`'.repeat(longest + 1);
  return [fence, ...shown, ...(rest > 0 ? [`… ${rest} more ${rest === 1 ? 'line' : 'lines'}`] : []), fence].join('\n');
}

function countLines(output: string): number {
  return output === '' ? 0 : output.replace(/\n$/, '').split('\n').length;
}

function argumentsOf(call: AnsweredCall): Arguments {
  try {
    const value: unknown = JSON.parse(call.arguments);
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

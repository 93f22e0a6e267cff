import { CliError, type CommandHandler, type CommandLine, exit } from '../../kernel/console/command.js';
import { localTime, oneLine, printJson } from '../../kernel/console/line-output.js';
import { blamed, chosenLines, fileAndLines } from './blame.js';
import { openBlame } from './blame-file.js';
import { callName, lineJson } from './blame-formats.js';
import type { BlamedLine } from './blamed-line.js';
import type { CallRecord } from './session-record.js';

/** `agent why`: the prompt, the plan and the calls that led to one line. */
export const why: CommandHandler = {
  line: {
    example: 'agent why src/main.ts:42',
    options: (command) => command.option('--json', 'one JSON object'),
    run: (line, [target = ''], options: { readonly json?: boolean }) =>
      explainLine(line, target, options.json === true),
  },
};

async function explainLine(line: CommandLine, target: string, json: boolean): Promise<number> {
  return await line.withStore(async (opened) => {
    await opened.newestHere();
    const { cwd, env } = opened.settings;
    const asked = fileAndLines(target, cwd, undefined);
    if (asked.last !== asked.first)
      throw new CliError(exit.usage, `\`${target}\` does not name one line`, 'For example: agent why src/main.ts:42');
    const [found] = chosenLines(await blamed(await openBlame(opened, env), asked, cwd), asked);
    if (!found) throw new CliError(exit.usage, `${asked.name} is empty`, 'agent blame shows the lines of a file.');
    if (json) printJson(line.out, explanationJson(found), 2);
    else line.out.print(explanation(found, asked.name));
    return exit.done;
  });
}

function explanationJson(found: BlamedLine) {
  const { call } = found;
  return {
    line: lineJson(found),
    prompt: call?.prompt ?? null,
    plan: call?.session.planFor(call) ?? null,
    calls: call === null ? [] : leadingTo(call).map(({ seq, name, summary }) => ({ seq, name, summary })),
    resume: call === null ? null : resumeLine(call),
  };
}

/** Returns the calls of the turn up to the one that wrote the line. */
function leadingTo(call: CallRecord): readonly CallRecord[] {
  return call.session.calls.filter(({ turn, seq }) => turn === call.turn && seq <= call.seq);
}

/** Returns the command line that continues right after a call. A sub-agent's session is continued in a copy. */
function resumeLine({ session: { row }, lastSeq }: CallRecord): string {
  return `agent -r ${row.id}${row.parentCallId === undefined ? '' : ' --fork'} --at ${lastSeq}`;
}

const mostCalls = 30;

function explanation(found: BlamedLine, name: string): string {
  const { call } = found;
  const head = [`${name}:${found.line}  ${found.text.trim()}`, ''];
  if (call === null) return rows([...head, withoutCall(found)]);
  const model = call.session.modelOf(call);
  const by = { user: 'by you', rule: 'by a rule', mode: 'by the approval mode' };
  const plan = call.session.planFor(call);
  const calls = leadingTo(call);
  const skipped = calls.length - mostCalls;
  return rows([
    ...head,
    `${found.kind === 'command' ? 'Changed by a command' : 'Written'} ${localTime(call.at)} by ${model?.model ?? 'an unknown model'}, ` +
      `${callName(call)}, turn ${call.turn}${call.approvedBy === null ? '' : `, approved ${by[call.approvedBy]}`}.`,
    ...(call.isRedacted ? ['The call was redacted.'] : []),
    '',
    'Prompt:',
    ...indented(call.prompt ?? '(none)'),
    ...(plan === null ? [] : ['', 'Plan:', ...indented(plan)]),
    '',
    'Calls that led to it:',
    ...(skipped > 0 ? [`  … ${skipped} earlier`] : []),
    ...calls.slice(-mostCalls).map(({ seq, summary }) => `  ${String(seq).padStart(4)}  ${oneLine(summary, 110)}`),
    '',
    `Go there: ${resumeLine(call)}`,
  ]);
}

function withoutCall({ kind, commit, over }: BlamedLine): string {
  if (commit)
    return `Older than the log: commit ${commit.id.slice(0, 12)} by ${commit.author}, ${localTime(commit.at)}: ${commit.summary}`;
  if (kind !== 'outside') return 'Neither the log nor git has this line.';
  return `Edited outside of recorded sessions${over ? `, in place of a line of ${callName(over)}` : ''}.`;
}

function indented(text: string): readonly string[] {
  return text.split('\n').map((line) => `  ${line}`.trimEnd());
}

function rows(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join('');
}

import { type Token, type Tokens, walkTokens } from 'marked';
import { money } from '../kernel/agent/budget.js';
import { requestCosts } from '../kernel/agent/compaction-figures.js';
import type { Session } from '../kernel/agent/session.js';
import { type Event, knownEvent } from '../kernel/core/event.js';
import { utf8Bytes } from '../kernel/core/text.js';
import { sanitize } from '../kernel/core/sanitize.js';
import { contextWindowOf } from '../kernel/providers/models.js';
import { reasoningText } from '../kernel/providers/wires/pieces.js';
import { counted } from '../kernel/tools/define-tool.js';
import { callJson, eventChange, eventText, eventTitle, pickEvent } from '../ui/event-text.js';
import { languageOf } from '../ui/markdown/blocks.js';
import { lexMarkdown } from '../ui/markdown/incremental.js';
import { instructionPlace } from '../app/instructions/instruction-places.js';
import { listInstructions } from '../app/instructions/listed-instructions.js';
import type { InstructionEntry } from '../kernel/console/instruction-files.js';
import type { Repl, CommandHandler } from '../kernel/console/command.js';
import { showUncommitted } from './git-changes.js';

/** `/show`: an event in full; the last result without a number. */
export const showEvent: CommandHandler = {
  slash: async (argument, { screen, sessions }) => {
    const { session } = sessions.current();
    // The result of a call comes soon after it.
    const events = argument === '' ? session.recent() : session.events();
    const event = pickEvent(events, argument);
    if (event) printEvent(screen, events, event);
    else
      screen.notice(
        'error',
        argument === '' ? 'There is nothing to show yet.' : `This session has no event ${argument}.`,
      );
  },
};

/** Prints a result below its number and its call, with the JSON of the call below it. */
function printEvent(screen: Repl['screen'], events: readonly Event[], event: Event): void {
  const below = callJson(events, event);
  const change = eventChange(event);
  const about = [eventTitle(events, event), change?.title ?? ''].filter((part) => part !== '').join(' · ');
  const title = `[${event.seq}] ${about}`.trimEnd();
  const text = [eventText(event, reasoningText), below].filter((part) => part !== '').join('\n\n');
  screen.print(`${title}\n${text}`, change ? { title, diff: change.diff, below } : undefined);
}

/** `/diff`: what the calls of this session changed in files; with `--git`, what is not committed. */
export const showChanges: CommandHandler = {
  slash: async (argument, repl) => {
    const { screen, sessions } = repl;
    if (/^(?:--)?git$/.test(argument.trim())) {
      await showUncommitted(repl);
      return;
    }
    if (argument.trim() !== '') {
      screen.notice(
        'error',
        `/diff has no ${argument.trim()}. There is /diff, and /diff --git for uncommitted changes.`,
      );
      return;
    }
    const changes = sessions
      .current()
      .session.events()
      .flatMap((raw) => {
        const event = knownEvent(raw);
        return event?.kind === 'tool_result' && event.data.diff
          ? [{ title: `[${event.seq}] ${event.content}`, diff: event.data.diff }]
          : [];
      });
    const text = changes.map(({ title, diff }) => `${title}\n${diff}`).join('\n');
    if (changes.length > 0) await screen.page('Changes', text, { changes });
    else screen.notice('info', 'No file was written or edited in this session. /diff --git shows uncommitted changes.');
  },
};

/** Some terminals silently refuse more bytes than this. */
const mostBytes = 74_994;

/** `/copy`: the last answer as it was written, or one code block of it; where there are several, it asks which. */
export const copyAnswer: CommandHandler = { slash: copy };

async function copy(argument: string, { screen, sessions }: Repl): Promise<void> {
  const { session } = sessions.current();
  const answer = lastAnswer(session.recent()) ?? lastAnswer(session.events());
  if (answer === null) {
    screen.notice('warn', 'There is no answer to copy yet.');
    return;
  }
  const blocks = codeBlocks(answer);
  const asked = argument === '' ? await whichPart(screen, answer, blocks) : argument;
  if (asked === null) return;
  const text = asked === '' ? answer : blocks[Number(asked) - 1]?.text;
  if (text === undefined) {
    screen.notice('warn', blocksSaid(blocks.length));
    return;
  }
  const target = await screen.copy(text);
  if (target === null) {
    screen.notice('warn', 'This terminal has no clipboard that a program could reach.');
    return;
  }
  const what = asked === '' ? 'The last answer' : `Code block ${asked}`;
  const large = Buffer.byteLength(text) > mostBytes ? ' It is large: some terminals take no more than 75 kB.' : '';
  const lines = counted(text.split('\n').length, 'line');
  screen.notice('info', `${what} (${lines}) ${copied[target]}${target === 'system' ? '' : large}`);
}

const copied = {
  tmux: "was copied to tmux's paste buffer and to the clipboard of its terminal, if that allows it.",
  system: 'was copied to the clipboard.',
  terminal: 'was sent to the clipboard of the terminal, if it allows programs to write there (OSC 52).',
} as const;

function blocksSaid(count: number): string {
  if (count === 0) return 'The last answer has no code block.';
  const range = count > 1 ? `/copy 1 to /copy ${count}` : '/copy 1';
  return `The last answer has ${counted(count, 'code block')}: ${range}.`;
}

interface CodeBlock {
  readonly text: string;
  readonly language: string;
}

/** Returns the number of the block that the user wants as they would type it; empty: the whole answer; null: none. */
async function whichPart(screen: Repl['screen'], answer: string, blocks: readonly CodeBlock[]): Promise<string | null> {
  if (blocks.length < 2) return '';
  const lines = (text: string): string => counted(text.split('\n').length, 'line');
  return await screen.pick({
    title: 'Copy',
    items: [
      {
        label: 'the whole answer',
        detail: lines(answer),
        value: '',
      },
      ...blocks.map(({ text, language }, index) => ({
        label: `${index + 1}: ${text.trim().split('\n')[0] ?? ''}`,
        detail: `${language} ${lines(text)}`.trim(),
        value: String(index + 1),
      })),
    ],
  });
}

function lastAnswer(events: readonly Event[]): string | null {
  for (const raw of events.toReversed()) {
    const event = raw.kind === 'assistant' ? knownEvent(raw) : null;
    if (event?.kind === 'assistant' && event.content.trim() !== '') return event.content;
  }
  return null;
}

/** The code blocks of a Markdown text, in order, wherever they stand. */
function codeBlocks(text: string): readonly CodeBlock[] {
  const found: CodeBlock[] = [];
  void walkTokens(lexMarkdown(text), (token: Token) => {
    if (token.type === 'code' && typeof token.text === 'string')
      found.push({ text: token.text, language: languageOf(token as Tokens.Code) });
  });
  return found;
}

/** `/cost`: tokens and money of this session. */
export const cost: CommandHandler = {
  slash: async (_argument, { screen, sessions }) => {
    const { requests, sum } = sessions.current().session.totals();
    const spent = sum.cost_usd === null ? 'unknown' : `$${sum.cost_usd.toFixed(4)}`;
    const row = [requests, sum.input_tokens, sum.cache_read_tokens, sum.cache_write_tokens, sum.output_tokens, spent];
    screen.print(
      [
        `| requests | input | cache read | cache write | output | cost |`,
        '| ---: | ---: | ---: | ---: | ---: | ---: |',
        `| ${row.join(' | ')} |`,
      ].join('\n'),
      'markdown',
    );
  },
};

/** `/context`: what the next request is made of, by estimated size. */
export const context: CommandHandler = {
  slash: async (_argument, { screen, sessions, settings }: Repl) => {
    const { session } = sessions.current();
    const conversation = session.record.conversation();
    const messages = conversation.messages.map((message) => utf8Bytes(JSON.stringify(message)));
    const parts = [
      ['system prompt', utf8Bytes(conversation.system)],
      ['tools', utf8Bytes(JSON.stringify(conversation.tools))],
      ['messages', messages.reduce((sum, bytes) => sum + bytes, 0)],
    ] as const;
    const total = parts.reduce((sum, [, bytes]) => sum + bytes, 0);
    const { provider, model } = session.ref();
    const window = contextWindowOf(settings, provider, model);
    const share = (bytes: number): string => (window === null ? '' : `${((bytes / 4 / window) * 100).toFixed(1)} %`);
    screen.print(
      [
        `| part | tokens (bytes/4) | of the window |`,
        '| --- | ---: | ---: |',
        ...[...parts, ['all', total] as const].map(
          ([name, bytes]) => `| ${name} | ${Math.ceil(bytes / 4)} | ${share(bytes)} |`,
        ),
        '',
        `${windowSaid(model, window)} ${automaticCompaction(settings.config.limits.compaction, window)}`,
        ...(await gainRows(session, window)),
        ...instructionRows(listInstructions(instructionPlace(settings), conversation)),
      ].join('\n'),
      'markdown',
    );
  },
};

function windowSaid(model: string, window: number | null): string {
  return window === null
    ? `The context window of ${model} is not known.`
    : `${model} has a window of ${window} tokens.`;
}

function automaticCompaction(
  { atShare, assumedWindow }: Repl['settings']['config']['limits']['compaction'],
  known: number | null,
): string {
  const window = known ?? assumedWindow;
  if (atShare === null) return 'Automatic compaction is off (`compaction.at_percent`).';
  if (window === null) return 'The conversation is compacted when the provider refuses a request as too long.';
  const assumed = known === null ? `${window} are assumed (\`compaction.assumed_window\`). ` : '';
  return `${assumed}The conversation is compacted from ${Math.round(window * atShare)} tokens on (${Math.round(atShare * 100)} %).`;
}

/** Says what each way to make the next request shorter would win. */
async function gainRows(session: Session, window: number | null): Promise<readonly string[]> {
  const omission = await session.omissionPlan();
  const summary = await session.compactionGain();
  const gains = [
    ...(omission
      ? [[`leave out ${counted(omission.seqs.length, 'old tool result')} (\`/compact --results\`)`, omission] as const]
      : []),
    ...(summary
      ? [
          [
            `summary of ${counted(summary.messages, 'message')} (\`/compact\`), without its own length`,
            summary,
          ] as const,
        ]
      : []),
  ].filter(([, { tokensBefore, tokensAfter }]) => tokensAfter < tokensBefore);
  if (gains.length === 0) return ['', 'A compaction would win nothing yet.'];
  return [
    '',
    '| possible gain | tokens | of the window | input of a request |',
    '| --- | ---: | ---: | ---: |',
    ...gains.map(([name, change]) => {
      const won = change.tokensBefore - change.tokensAfter;
      const { usd_before: before, usd_after: after } = requestCosts(session.price(), change);
      const cost = before === undefined || after === undefined ? '' : `${money(before)} → ${money(after)}`;
      return `| ${name} | ${won} | ${window === null ? '' : `${((won / window) * 100).toFixed(1)} %`} | ${cost} |`;
    }),
  ];
}

/** Lists the files of instructions, those that come later included. */
function instructionRows(files: readonly InstructionEntry[]): readonly string[] {
  if (files.length === 0) return [];
  const cell = (text: string): string => sanitize(text).replaceAll(/[\\`*_|[\]<>]/g, (char) => `\\${char}`);
  return [
    '',
    '| instructions | origin | tokens (bytes/4) | when |',
    '| --- | --- | ---: | --- |',
    ...files.map(
      ({ name, origin, bytes, when }) => `| ${cell(name)} | ${origin} | ${Math.ceil(bytes / 4)} | ${cell(when)} |`,
    ),
  ];
}

/** `/budget`: what may be spent, shown or set. It counts for the sessions of this run. */
export const budget: CommandHandler = {
  slash: async (argument, { screen, sessions, spending }) => {
    const { session } = sessions.current();
    const spent = session.totals().spentUsd;
    const before = spending.limitUsd();
    const asked = askedLimit(argument.trim(), before ?? spent);
    if (asked === undefined)
      screen.notice('error', 'Give an amount in US dollars: /budget 5, /budget +2, /budget off.');
    else if (asked !== 'as it is') spending.set(asked);
    const allowed = spending.budget(session.ref());
    if (allowed !== null && 'code' in allowed) {
      spending.set(before);
      screen.notice('error', `${allowed.message.replace('--max-cost', '/budget')}. ${allowed.hint ?? ''}`);
    } else if (asked !== undefined) screen.notice('info', spendingLine(spent, spending.limitUsd()));
  },
};

/** The limit that `text` asks for, null for none; undefined for what is not an amount. */
function askedLimit(text: string, from: number): number | null | 'as it is' | undefined {
  if (text === '') return 'as it is';
  if (text === 'off') return null;
  const [, plus, amount] = /^(\+?)\$?(\d+(?:\.\d+)?|\.\d+)$/.exec(text) ?? [];
  return amount === undefined ? undefined : (plus === '+' ? from : 0) + Number(amount);
}

function spendingLine(spent: number, limit: number | null): string {
  if (limit === null) return `${money(spent)} is spent, and there is no limit. /budget 5 sets one.`;
  const left = limit - spent;
  return left > 0
    ? `${money(spent)} of ${money(limit)} is spent; ${money(left)} is left.`
    : `${money(spent)} is spent, and the limit is ${money(limit)}: nothing more is sent.`;
}

import { type Event, knownEvent, type KnownEvent } from '../../kernel/core/event.js';
import { isRecord, parseJson } from '../../kernel/core/json.js';
import { firstLine } from '../../kernel/core/text.js';
import type { GoalState } from './goal-state.js';

/** The most events that a model is given to choose its evidence from, the newest. */
const mostListed = 60;

/** An event that may show that a goal is met. */
export interface Listed {
  readonly seq: number;
  readonly text: string;
}

/** Returns the results and answers since the goal was set, each with its event number. */
export function evidenceList(events: readonly Event[], { setSeq }: GoalState): readonly Listed[] {
  const titles = new Map<string, string>();
  const listed: Listed[] = [];
  for (const raw of events) {
    const event = raw.seq < setSeq ? null : knownEvent(raw);
    if (event?.kind === 'tool_call') titles.set(event.data.id, event.content);
    const text = event === null ? null : evidenceText(event, titles);
    if (text !== null) listed.push({ seq: raw.seq, text });
  }
  return listed.slice(-mostListed);
}

function evidenceText(event: KnownEvent, titles: ReadonlyMap<string, string>): string | null {
  if (event.kind === 'assistant' && event.content.trim() !== '') return `answer: ${firstLine(event.content, 120)}`;
  if (event.kind !== 'tool_result') return null;
  const title = titles.get(event.data.tool_call_id) ?? event.data.name;
  const outcome = event.data.success ? '' : 'failed: ';
  return `${firstLine(title, 160)} → ${outcome}${firstLine(event.content, 120)}`;
}

/** Returns the question that a model answers without tools. */
export function evidenceQuestion(condition: string, listed: readonly Listed[]): string {
  return [
    `[Is this goal of the user met now? ${condition}`,
    '',
    'Judge by what the results below show, not by what was planned or is likely. Events since the goal was set:',
    ...listed.map(({ seq, text }) => `event ${seq}: ${text}`),
    '',
    'Answer with one JSON object and no other text:',
    '{"met": true or false, "evidence": [numbers of the events that show it], "reason": "one sentence",',
    ' "blocked": true only if nothing but the user can help}]',
  ].join('\n');
}

/** The word of a model on a goal. */
export interface GoalJudgement {
  readonly met: boolean;
  /** Numbers of events that were listed. */
  readonly evidence: readonly number[];
  readonly reason: string;
  readonly blocked: boolean;
}

/** Reads the answer. A goal that is said to be met without an event that shows it is not met. */
export function parseGoalJudgement(answer: string, listed: readonly Listed[]): GoalJudgement {
  const value = jsonObjectIn(answer) ?? plainAnswer(answer);
  if (value === null) return { met: false, evidence: [], reason: unreadable, blocked: false };
  const known = new Set(listed.map(({ seq }) => seq));
  const named = Array.isArray(value['evidence']) ? (value['evidence'] as readonly unknown[]) : [];
  const evidence = [...new Set(named.map(Number).filter((seq) => known.has(seq)))];
  const given = typeof value['reason'] === 'string' ? firstLine(value['reason'], 300) : '';
  const isClaimed = value['met'] === true;
  const reason = isClaimed && evidence.length === 0 ? unshown : given;
  return { met: isClaimed && evidence.length > 0, evidence, reason, blocked: value['blocked'] === true && !isClaimed };
}

const unreadable = 'The model gave no readable answer on whether it is met.';
const unshown = 'The model said that it is met and named no event that shows it.';

/** Reads `Yes, event 12 shows it.`: some models do not answer in JSON. */
function plainAnswer(text: string): Readonly<Record<string, unknown>> | null {
  const word = /^\W*(yes|no|met|not met|the goal is met|the goal is not met)\b/i.exec(text)?.[1];
  if (word === undefined) return null;
  const evidence = [...text.matchAll(/\bevents?[\s:#]*(\d+)/gi)].map((match) => match[1]);
  return { met: !/^no|not/i.test(word), evidence, reason: text };
}

function jsonObjectIn(text: string): Readonly<Record<string, unknown>> | null {
  const from = text.indexOf('{');
  const to = text.lastIndexOf('}');
  if (from < 0 || to < from) return null;
  try {
    const value: unknown = parseJson(text.slice(from, to + 1));
    return isRecord(value) ? value : null;
  } catch {
    return null;
  }
}

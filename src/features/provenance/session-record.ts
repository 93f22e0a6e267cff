import { atPresentPaths } from '../../kernel/agent/file-history.js';
import { type ChangeData, type Event, type KnownEvent, knownEvent, typedText } from '../../kernel/core/event.js';
import { isRecord, parseJson } from '../../kernel/core/json.js';
import { todoLines, todoOf } from '../../kernel/core/projection.js';
import type { SessionRow } from '../../kernel/core/store.js';
import { redactedText } from '../../kernel/core/text-trace.js';

/** The contents of a file at a moment: a SHA-256 (hex), no file, or contents that were not read. */
export type ContentState = { readonly sha256: string } | 'absent' | 'unread';

/** A recorded change of one file, by a call or by an undo, a redo or a restore. */
export interface FileChangeRecord {
  readonly session: SessionRecord;
  /** The `seq` of the event that records it. */
  readonly seq: number;
  /** Unix ms: when it was recorded, and when what made it began. */
  readonly at: number;
  readonly startedAt: number;
  readonly path: string;
  readonly before: ContentState;
  readonly after: ContentState;
  /** Null for an undo, a redo or a restore. */
  readonly call: CallRecord | null;
  /** Of an undo or redo: the `seq` of the result that was undone or redone. */
  readonly reverts: { readonly kind: 'undo' | 'redo' | 'restore'; readonly seq: number } | null;
  /** The diff of the call, if it changed only this file. */
  readonly diff: string | null;
  /** Files that the same event deleted. */
  readonly deleted: readonly { readonly path: string; readonly sha256: string }[];
}

/** A tool call with the circumstances in which it was made. */
export interface CallRecord {
  readonly session: SessionRecord;
  readonly seq: number;
  /** The last event of the call: its result, once there is one. */
  lastSeq: number;
  readonly name: string;
  readonly summary: string;
  /** JSON as the model wrote it. */
  readonly arguments: string;
  /** Unix ms. */
  readonly at: number;
  startedAt: number;
  /** The number of the turn in its session, from 1; 0 before the first message. */
  readonly turn: number;
  /** The message of the user that began the turn. */
  readonly prompt: string | null;
  readonly responseId: string;
  approvedBy: 'user' | 'rule' | 'mode' | null;
  readonly isRedacted: boolean;
}

export interface Model {
  readonly provider: string;
  readonly model: string;
}

/** One session, as far as it is about changes of files. */
export class SessionRecord {
  readonly row: SessionRow;
  readonly calls: CallRecord[] = [];
  readonly changes: FileChangeRecord[] = [];
  readonly #events: readonly Event[];
  readonly #models = new Map<string, Model>();
  readonly #byId = new Map<string, CallRecord>();
  #turn = 0;
  #prompt: string | null = null;
  /** The last event of the conversation was a result: a message of the user is part of the same turn. */
  #isInTurn = false;

  /** Reads the events of a session. */
  constructor(row: SessionRow, stored: readonly Event[]) {
    this.row = row;
    this.#events = stored;
    for (const raw of atPresentPaths(stored, row.moves ?? [])) {
      const event = knownEvent(raw);
      if (event) this.#take(event);
    }
  }

  modelOf({ responseId }: CallRecord): Model | null {
    const found = this.#models.get(responseId);
    if (found) return found;
    return this.row.model === null ? null : { provider: this.row.provider ?? '', model: this.row.model };
  }

  /** Returns the plan that a call carries out: the last one that was proposed before it, else the todo list. */
  planFor({ seq: callSeq }: CallRecord): string | null {
    const earlier = this.calls.filter(({ seq }) => seq < callSeq);
    const proposed = earlier.findLast(({ name }) => planTools.includes(name));
    const plan = proposed === undefined ? null : argumentsOf(proposed)['plan'];
    if (typeof plan === 'string') return plan;
    const items = todoOf(this.#events.filter(({ seq }) => seq < callSeq));
    return items.length === 0 ? null : todoLines(items).join('\n');
  }

  #take(event: KnownEvent): void {
    switch (event.kind) {
      case 'user':
        this.#takeMessage(event);
        return;
      case 'assistant':
      case 'usage':
        this.#models.set(event.data.response_id, { provider: event.data.provider, model: event.data.model });
        if (event.kind === 'assistant') this.#isInTurn = false;
        return;
      case 'tool_call':
        this.#takeCall(event);
        return;
      case 'tool_started': {
        const call = this.#byId.get(event.data.tool_call_id);
        if (call) call.startedAt = event.createdAt;
        return;
      }
      case 'approval': {
        const call = this.#byId.get(event.data.tool_call_id);
        const { by } = event.data;
        if (call) call.approvedBy = by === 'user' || by === 'session_grant' ? 'user' : 'rule';
        return;
      }
      case 'tool_result':
        this.#takeResult(event);
        return;
      case 'undo':
      case 'redo':
      case 'restore':
        this.#addChanges(event, event.data.changes, null, null);
        return;
      default:
    }
  }

  #takeMessage(event: Extract<KnownEvent, { kind: 'user' }>): void {
    const typed = typedText(event);
    if (typed === null) return;
    const isSteering = this.#isInTurn && event.data?.source !== undefined;
    if (isSteering) return;
    this.#turn++;
    this.#prompt = typed;
    this.#isInTurn = false;
  }

  #takeCall(event: Extract<KnownEvent, { kind: 'tool_call' }>): void {
    const { id, function: asked, response_id: responseId } = event.data;
    const call: CallRecord = {
      session: this,
      seq: event.seq,
      lastSeq: event.seq,
      name: asked.name,
      summary: event.content,
      arguments: asked.arguments,
      at: event.createdAt,
      startedAt: event.createdAt,
      turn: this.#turn,
      prompt: this.#prompt,
      responseId,
      approvedBy: null,
      isRedacted: event.content.includes(redactedText),
    };
    this.#byId.set(id, call);
    this.calls.push(call);
  }

  #takeResult(event: Extract<KnownEvent, { kind: 'tool_result' }>): void {
    const { tool_call_id: id, changes = [], decided_by: decidedBy, diff = null } = event.data;
    this.#isInTurn = true;
    const call = this.#byId.get(id);
    if (!call) return;
    call.lastSeq = event.seq;
    if (decidedBy !== undefined) call.approvedBy = approverOf(decidedBy);
    else if (changes.length > 0) call.approvedBy ??= 'mode';
    if (Array.isArray(changes)) this.#addChanges(event, changes, call, changes.length === 1 ? diff : null);
  }

  #addChanges(event: KnownEvent, changes: readonly ChangeData[], call: CallRecord | null, diff: string | null): void {
    const reverts =
      event.kind === 'undo' || event.kind === 'redo' || event.kind === 'restore'
        ? { kind: event.kind, seq: event.data.of_seq }
        : null;
    const deleted = changes.flatMap(({ path, what, before }) =>
      what === 'deleted' && before !== null ? [{ path, sha256: before }] : [],
    );
    for (const change of changes) {
      const { path, before, after, what } = change;
      if (before !== null && before === after) continue; // only its mode changed
      this.changes.push({
        session: this,
        seq: event.seq,
        at: event.createdAt,
        startedAt: call?.startedAt ?? event.createdAt,
        path,
        before: stateOf(before, what === 'created'),
        after: stateOf(after, what === 'deleted'),
        call,
        reverts,
        diff,
        deleted,
      });
    }
  }
}

function stateOf(sha256: string | null, isAbsent: boolean): ContentState {
  if (sha256 !== null) return { sha256 };
  return isAbsent ? 'absent' : 'unread';
}

function approverOf(decider: 'static' | 'rehearsal' | 'rule' | 'mode' | 'user' | 'hook'): 'user' | 'rule' | 'mode' {
  switch (decider) {
    case 'user':
      return 'user';
    case 'rule':
    case 'hook':
      return 'rule';
    case 'static':
    case 'rehearsal':
    case 'mode':
      return 'mode';
    default:
      return decider satisfies never;
  }
}

const planTools = ['propose_plan', 'ExitPlanMode', 'exit_plan_mode'];

/** Returns the arguments of a call; none where they are not JSON. */
export function argumentsOf(call: Pick<CallRecord, 'arguments'>): Readonly<Record<string, unknown>> {
  try {
    const parsed: unknown = parseJson(call.arguments);
    return isRecord(parsed) ? parsed : {};
  } catch {
    return {};
  }
}

import { isRecord, type Json, type JsonObject } from '../../core/json.js';
import type { ReceivedCall } from '../../core/provider.js';
import { isComplete, mayBeComplete, parseData } from './answer.js';

/** A piece of a call in a stream. */
export interface CallPiece {
  /** The index that the server gives; null where it gives none. */
  readonly place: number | null;
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
  /** The fields that the protocol does not describe: the server wants them back with the call. */
  readonly fields: JsonObject;
}

/** A call as its pieces were joined so far. */
export interface CallSlot {
  readonly place: number | null;
  id: string;
  name: string;
  arguments: string;
  fields: JsonObject;
  /** True where the server gave another id with each piece, so that its ids mean nothing. */
  hasManyIds: boolean;
}

/** A call that may get more pieces. */
interface OpenSlot extends CallSlot {
  /** The last character of the arguments that is not a blank; '' if there is none. To look at the arguments themselves
   * after each piece would take time in the square of their length. */
  last: string;
}

/** Joins the calls of a stream. A call that the server sends again is the same call. */
export interface CallPieces {
  add(piece: CallPiece): void;
  /** The calls so far, in order of their first piece, without repeats. */
  calls(): readonly ReceivedCall[];
  /** Returns the number of calls that have begun. */
  count(): number;
}

/** Servers number the pieces of a call, name its id, both, or neither; they repeat ids and names in every piece, send
 * another id with each, send the whole call behind its pieces, and put several calls under one number. */
export function createCallPieces(): CallPieces {
  const slots: OpenSlot[] = [];
  return {
    add(piece) {
      const found = findSlot(slots, piece);
      if (found === undefined || startsAnother(found, piece))
        slots.push({ ...piece, last: lastOf(piece.arguments), hasManyIds: false });
      else append(found, piece);
    },
    calls: () =>
      withoutRepeats(slots.filter(({ name, arguments: text }) => name !== '' || !isBlank(text))).map(receivedCall),
    count: () => slots.length,
  };
}

export function receivedCall({ id, name, arguments: text, fields }: CallSlot): ReceivedCall {
  return { id, name, arguments: text, ...(Object.keys(fields).length === 0 ? {} : { fields }) };
}

/** Returns the call that a piece may belong to: by its index and id, by either, else the latest. */
function findSlot(slots: readonly OpenSlot[], piece: CallPiece): OpenSlot | undefined {
  const { place, id } = piece;
  const byId = id === '' ? undefined : slots.findLast((slot) => slot.id === id);
  if (place === null) return byId ?? slots.at(-1);
  const here = slots.filter((slot) => slot.place === place);
  const same = id === '' ? undefined : here.findLast((slot) => slot.id === id);
  return same ?? here.at(-1) ?? (byId !== undefined && isRepeat(byId, piece) ? byId : undefined);
}

/** Differences between a piece and the call that it may belong to. */
interface Difference {
  readonly hasNewId: boolean;
  readonly hasNewName: boolean;
  readonly isNamed: boolean;
  /** It has no arguments yet. */
  readonly isHead: boolean;
  readonly isObject: boolean;
}

function startsAnother(slot: OpenSlot, piece: CallPiece): boolean {
  const isObject = startsObject(piece.arguments);
  const isNamed = piece.name !== '';
  if (piece.id === '' && !isNamed && !isObject) return false;
  const hasNewName = isNamed && slot.name !== '' && piece.name !== slot.name;
  const difference = {
    hasNewId: isNewId(slot, piece),
    hasNewName,
    isNamed,
    isHead: isBlank(piece.arguments),
    isObject,
  };
  return isWhole(slot) ? followsWhole(slot, piece, difference) : followsPart(slot, difference);
}

/** Returns true where a piece behind a whole call starts another: it is not the same call again. */
function followsWhole(
  slot: OpenSlot,
  piece: CallPiece,
  { hasNewId, hasNewName, isNamed, isHead, isObject }: Difference,
): boolean {
  if (isHead) return isNamed && (hasNewId || hasNewName);
  return hasNewId || (!isRepeat(slot, piece) && (isNamed || isObject));
}

/** Returns true where a piece behind an unfinished call starts another. Under one index an id alone proves nothing:
 * servers give another one with each piece. */
function followsPart(slot: OpenSlot, { hasNewId, hasNewName, isNamed, isHead, isObject }: Difference): boolean {
  if (hasNewName && (hasNewId || (isObject && slot.place === null))) return true;
  if (isHead || slot.last === '') return hasNewId && isNamed && slot.place === null;
  return isObject && isNamed && (hasNewId || !mayGoOnWithObject(slot.arguments));
}

function isNewId(slot: CallSlot, piece: CallPiece): boolean {
  return piece.id !== '' && slot.id !== '' && piece.id !== slot.id && !slot.hasManyIds;
}

/** Adds a piece to its call. A name may be repeated in every piece, or be split into pieces before the arguments. */
function append(slot: OpenSlot, piece: CallPiece): void {
  if (isNewId(slot, piece)) slot.hasManyIds = true;
  if (slot.id === '') slot.id = piece.id;
  slot.fields = mergeFields(slot.fields, piece.fields);
  const hasMore = piece.arguments !== '' && !isSentAgain(slot, piece);
  if (slot.name === '') slot.name = piece.name;
  else if (piece.name !== slot.name && slot.arguments === '') slot.name += piece.name;
  if (!hasMore) return;
  slot.arguments += piece.arguments;
  slot.last = lastOf(piece.arguments) || slot.last;
}

/** Returns whether a piece behind a whole call brings nothing: a blank, or the same arguments again. */
function isSentAgain(slot: OpenSlot, piece: CallPiece): boolean {
  if (isBlank(piece.arguments)) return isWhole(slot);
  return startsObject(piece.arguments) && isWhole(slot) && isRepeat(slot, piece);
}

function lastOf(text: string): string {
  return text.trimEnd().slice(-1);
}

function isWhole(slot: OpenSlot): boolean {
  return slot.last === '}' && isComplete(slot.arguments);
}

/** Returns the calls without those that the server sent again. Two calls with different ids are two calls, however
 * alike they are. */
export function withoutRepeats(slots: readonly CallSlot[]): readonly CallSlot[] {
  const kept: CallSlot[] = [];
  for (const slot of slots) {
    const before = kept.findIndex((other) => isSameCall(other, slot));
    const known = kept[before];
    if (known === undefined) kept.push({ ...slot });
    else if (isComplete(known.arguments) || !isComplete(slot.arguments))
      kept[before] = { ...known, fields: mergeFields(known.fields, slot.fields) };
    else kept[before] = { ...slot, fields: mergeFields(known.fields, slot.fields) };
  }
  return kept;
}

function isSameCall(one: CallSlot, other: CallSlot): boolean {
  if (one.name !== other.name) return false;
  const isSameId = one.id !== '' && one.id === other.id;
  const isSamePlace = one.place === other.place && (one.hasManyIds || one.id === '' || other.id === '');
  if (isSameId || isSamePlace)
    return isEqual(one.arguments, other.arguments) || beginsLike(one.arguments, other.arguments);
  // A line end behind a whole call, under an id of its own.
  return one.place === other.place && other.arguments !== '' && isBlank(other.arguments) && isComplete(one.arguments);
}

/** Returns true where the first text broke off and the second is the whole. */
function beginsLike(part: string, whole: string): boolean {
  if (isBlank(whole)) return isComplete(part);
  return !isBlank(part) && !isComplete(part) && isComplete(whole) && whole.startsWith(part.trimEnd());
}

function isRepeat(slot: CallSlot, piece: CallPiece): boolean {
  return (piece.name === '' || piece.name === slot.name) && isEqual(slot.arguments, piece.arguments);
}

/** Returns true for the same JSON object, however it is spaced. */
function isEqual(one: string, other: string): boolean {
  if (one === other) return true;
  if (!mayBeComplete(one) || !mayBeComplete(other)) return false;
  const [first, second] = [parseData(one), parseData(other)];
  return isRecord(first) && isRecord(second) && JSON.stringify(first) === JSON.stringify(second);
}

function startsObject(text: string): boolean {
  return text.trimStart().startsWith('{');
}

function isBlank(text: string): boolean {
  return text.trim() === '';
}

/** Returns true where an object may follow: inside a string, and where a value is due. */
function mayGoOnWithObject(text: string): boolean {
  let inString = false;
  let last = '';
  for (let at = 0; at < text.length; at++) {
    const char = text.charAt(at);
    if (char === '\\' && inString) at++;
    else if (char === '"') inString = !inString;
    if (!/\s/.test(char)) last = char;
  }
  return inString || last === ':' || last === '[' || last === ',';
}

/** Returns true where an object has a field that is not known. */
export function hasOthers(value: Readonly<Record<string, unknown>>, known: ReadonlySet<string>): boolean {
  for (const name of Object.keys(value)) if (!known.has(name)) return true;
  return false;
}

/** Returns the fields of `value` that are not `known` and hold something. */
export function unknownFields(value: Readonly<Record<string, unknown>>, known: ReadonlySet<string>): JsonObject {
  return Object.fromEntries(
    Object.entries(value).filter(
      ([name, item]) => !known.has(name) && item !== null && item !== undefined && item !== '',
    ),
  ) as JsonObject;
}

/** Adds the fields of a later piece: a later value wins, objects are joined. */
export function mergeFields(before: JsonObject, after: JsonObject): JsonObject {
  const added = Object.entries(after);
  if (added.length === 0) return before;
  const merged: Record<string, Json> = { ...before };
  for (const [name, value] of added) {
    const known = Object.hasOwn(merged, name) ? merged[name] : undefined;
    merged[name] = isRecord(known) && isRecord(value) ? mergeFields(known, value) : value;
  }
  return merged;
}

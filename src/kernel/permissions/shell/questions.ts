import { type Arg, danger, type Finding, type Invocation } from './invocation.js';

/** Judges words that are sent to a service, or that a tool obeys: the output of another command among them is
 * dangerous. */
export function sendsWords(call: Invocation, args: readonly Arg[] = call.args): readonly Finding[] {
  return args.some((arg) => arg.substitution === 'any') ? danger(call, 'sends the output of a command away') : [];
}

/** The texts of the words, joined for patterns. */
export function wordsOf(args: readonly Arg[]): string {
  return args.map(({ text }) => text).join(' ');
}

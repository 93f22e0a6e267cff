import { type Arg, change, danger, type Finding, type Invocation } from './invocation.js';

/** Judges a question to a service or a tool: read-only if its words are known. The output of another command in it
 * would be sent away. */
export function asks(call: Invocation, args: readonly Arg[] = call.args): readonly Finding[] {
  if (args.some((arg) => arg.substitution === 'any')) return danger(call, 'sends the output of a command away');
  return args.some((arg) => arg.dynamic && arg.substitution !== 'names')
    ? change(call, 'takes words that are known only when it runs')
    : [];
}

/** Judges a question to git. */
export function asksRepository(call: Invocation): readonly Finding[] {
  const { args } = call;
  if (args.some((arg) => arg.dynamic && arg.substitution !== 'names'))
    return change(call, 'takes words that are known only when it runs');
  return args.some(({ text }) => /^--sub\w*=diff$/.test(text)) ? change(call, 'runs git in each submodule') : [];
}

/** The texts of the words, joined for patterns. */
export function wordsOf(args: readonly Arg[]): string {
  return args.map(({ text }) => text).join(' ');
}

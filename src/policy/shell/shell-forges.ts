import { change, danger } from './shell-findings.js';
import { asks } from './shell-queries.js';
import type { Finding, Handler, Invocation } from './shell-types.js';

export const forgeHandlers: ReadonlyMap<string, Handler> = new Map<string, Handler>([
  ['gh', forge],
  ['glab', forge],
  ['hub', forge],
]);

function forge(call: Invocation): readonly Finding[] {
  const words = call.args.map((arg) => arg.text);
  const [area = '', verb = ''] = words.filter(
    (text, index) => !text.startsWith('-') && !/^(?:-R|--repo|--hostname)$/.test(words[index - 1] ?? ''),
  );
  const asked = `${area} ${verb}`;
  if (words[0] === '--version' || (questions[area] ?? otherQuestions).test(asked))
    return words.some((text) => turns[area]?.test(text) === true)
      ? danger(call, 'changes what others see, or prints or changes keys')
      : question(words, call);
  if (fetches.test(asked) && !words.includes('--force')) return change(call, 'fetches from a service');
  if (contributes.test(asked) && !elsewhere(words) && !call.args.some((arg) => arg.substitution === 'any'))
    return change(call, 'writes to the tracker of the project');
  return danger(call, 'changes what others see, or prints or changes keys');
}

function question(words: readonly string[], call: Invocation): readonly Finding[] {
  const isValue = (index: number): boolean => /^(?:-q|--jq)$/.test(words[index - 1] ?? '');
  const attached = (text: string): string | undefined => /^(?:-q|--jq=)(.+)$/s.exec(text)?.[1];
  const programs = words.flatMap((text, index) => (isValue(index) ? [text] : (attached(text) ?? [])));
  const environment = programs.some((text) => /\$ENV\b|(?<!\.)\benv\b/.test(text.replace(/"(?:[^"\\]|\\[^(])*"/g, '')));
  if (environment) return danger(call, 'reads the environment, which holds keys');
  if (
    words.some((text) => /^--(?:web|watch)$/.test(text) || (text === '-w' && words[0] !== 'run')) ||
    words[1] === 'watch'
  )
    return change(call, 'opens a program or runs until it is stopped');
  return asks(call);
}

/** Another repository than the one at hand, or a file as the text. */
function elsewhere(words: readonly string[]): boolean {
  return words.some((text) => /^(?:-R|--repo|-F|--body-file|--admin|--delete-branch)\b/.test(text));
}

const otherQuestions = /^\S+ (?:list|view|status|diff|checks|watch|show)$/;
const fetches =
  /^pr checkout$|^mr checkout$|^repo (?:clone|sync)$|^run download$|^release download$|^gist clone$|^repo set-default$/;
/** What people write where they work together, and can take back. */
const contributes =
  /^(?:(?:pr|mr) (?:create|comment|edit|ready|review|reopen|update|note)|issue (?:create|comment|edit|close|reopen|develop|note|update)|label (?:create|edit)|repo fork)$/;
const anything = /^/;
const listing = / (?:list|get)$/;
/** What may follow an area that has verbs of its own. */
const questions: Readonly<Record<string, RegExp>> = {
  version: anything,
  help: anything,
  status: anything,
  search: anything,
  api: anything,
  auth: / status$/,
  completion: anything,
  secret: / list$/,
  variable: / list$/,
  'ssh-key': listing,
  'gpg-key': listing,
  extension: / list$/,
  alias: / list$/,
  config: listing,
  run: / (?:list|view|watch)$/,
  workflow: / (?:list|view)$/,
  cache: / list$/,
};
/** Words that turn asking into more. */
const turns: Readonly<Record<string, RegExp>> = {
  auth: /^(?:-t|--show-token)$/,
  api: /^(?:-X|--method|-f|-F|--field|--raw-field|--input|-H|--header|--hostname)|^graphql$/,
  config: /token/,
};

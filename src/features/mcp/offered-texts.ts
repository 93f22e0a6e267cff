import { isRecord } from '../../kernel/core/json.js';
import { firstLine, headBytes } from '../../kernel/core/text.js';
import { visible } from './foreign-tools.js';

/** A text or file that a server has (`resources/list`). */
interface OfferedResource {
  readonly uri: string;
  readonly name: string;
  readonly about: string;
}

/** A message that a server writes for the user (`prompts/list`). */
export interface OfferedPrompt {
  /** `mcp__<server>__<prompt>`: the command that the user types. */
  readonly command: string;
  /** The name that the server gives it. */
  readonly ownName: string;
  readonly about: string;
  /** In the order that the server declares. */
  readonly parameters: readonly { readonly name: string; readonly required: boolean }[];
}

/** The resources and prompts of a server. */
export interface OfferedTexts {
  readonly resources: readonly OfferedResource[];
  readonly prompts: readonly OfferedPrompt[];
}

const maxResources = 1000;
const maxPrompts = 100;
const maxParameters = 20;
const maxAddressChars = 1024;
const maxMessageBytes = 64 * 1024;

/** Reads what a server lists; what nobody could use is left out. */
export function readTexts(server: string, resources: readonly unknown[], prompts: readonly unknown[]): OfferedTexts {
  return {
    resources: resources.slice(0, maxResources).flatMap((listed) => {
      if (!isRecord(listed) || typeof listed['uri'] !== 'string') return [];
      const { uri, name, description } = listed;
      if (uri.length > maxAddressChars || visible(uri) !== uri || /\s/.test(uri)) return [];
      return [
        {
          uri,
          name: line(name),
          about: line(description),
        },
      ];
    }),
    prompts: prompts.slice(0, maxPrompts).flatMap((listed) => {
      if (!isRecord(listed) || typeof listed['name'] !== 'string') return [];
      const { name: ownName, description, arguments: given } = listed;
      const parameters: readonly unknown[] = Array.isArray(given) ? given.slice(0, maxParameters) : [];
      return [
        {
          command: `mcp__${server}__${ownName}`.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, 64),
          ownName,
          about: line(description),
          parameters: parameters.flatMap((parameter) =>
            isRecord(parameter) && typeof parameter['name'] === 'string'
              ? [{ name: parameter['name'], required: parameter['required'] === true }]
              : [],
          ),
        },
      ];
    }),
  };
}

/** Returns the arguments of a prompt from the words behind its command, in the declared order; the last one takes all
 * that is left. A sentence where one is missing. */
export function promptArguments(
  { parameters }: OfferedPrompt,
  words: string,
): Readonly<Record<string, string>> | string {
  const given = [...words.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, word]) => quoted ?? word ?? '');
  const missing = parameters.find(({ required }, index) => required && given[index] === undefined);
  if (missing) return `it needs ${parameters.map(({ name }) => firstLine(visible(name), 64)).join(' ')}`;
  if (parameters.length === 0) return given.length === 0 ? {} : 'it takes no arguments';
  const last = parameters.length - 1;
  return Object.fromEntries(
    parameters.flatMap(({ name }, index) => {
      const value = index === last ? given.slice(last).join(' ') : given[index];
      return value === undefined || value === '' ? [] : [[name, value]];
    }),
  );
}

/** Returns the message that a server has written (`prompts/get`); '' where there is no text in it. */
export function promptMessage(result: unknown): string {
  const messages: readonly unknown[] = isRecord(result) && Array.isArray(result['messages']) ? result['messages'] : [];
  const texts = messages.flatMap((message) => {
    if (!isRecord(message)) return [];
    const blocks: readonly unknown[] = Array.isArray(message['content']) ? message['content'] : [message['content']];
    const text = blocks.map(blockText).filter((part) => part !== '');
    return message['role'] === 'assistant' ? text.map((part) => `[as your answer:]\n${part}`) : text;
  });
  return headBytes(texts.join('\n\n'), maxMessageBytes);
}

function blockText(block: unknown): string {
  if (!isRecord(block)) return '';
  const source = block['type'] === 'resource' && isRecord(block['resource']) ? block['resource'] : block;
  return typeof source['text'] === 'string' ? visible(source['text']) : '';
}

function line(value: unknown): string {
  return firstLine(visible(typeof value === 'string' ? value : ''), 200);
}

import { type Command, forEachChild, parse, type ParsedScript, type SyntaxNode, type Word } from 'unbash';
import type { Json } from '../../kernel/core/json.js';
import type { LoginShell } from './read-login-shell.js';

/** A command line in which nothing is left of the login shell: what is judged is what runs. */
export interface ExpandedCommand {
  readonly command: string;
  /** For the result of the call. */
  readonly facts: Readonly<Record<string, Json>>;
}

type Definitions = Pick<LoginShell, 'aliases' | 'functions'>;

/** Longer lines are left as they are. */
const maxChars = 100_000;
const maxFactChars = 400;

/** Puts the texts of aliases in the place of their names, and the functions that the line uses before it, with those that
 * these use. Returns null where the line uses none, and where the result could not be read as a command line: it then
 * runs as it is, without the login shell. */
export function expandCommand(command: string, shell: Definitions): ExpandedCommand | null {
  const line = withAliases(command, shell.aliases, new Set());
  if (line === null) return null;
  const used = usedFunctions(line, shell.functions);
  if (used === null || (line === command && used.length === 0)) return null;
  const definitions = used.map((name) => shell.functions.get(name) ?? '');
  const whole = [...definitions, line].join('\n');
  if (whole.length > maxChars || readable(whole) === null) return null;
  return {
    command: whole,
    facts: {
      ...(line === command ? {} : { expanded: line.length > maxFactChars ? `${line.slice(0, maxFactChars)}…` : line }),
      ...(used.length === 0 ? {} : { functions: used }),
    },
  };
}

/** Returns a line with its aliases replaced; null for one that is not understood. `inside`: the aliases whose text this
 * line is part of, which are not replaced again. */
function withAliases(line: string, aliases: ReadonlyMap<string, string>, inside: ReadonlySet<string>): string | null {
  const script = readable(line);
  if (script === null) return null;
  let changed = line;
  // From the last to the first, so that the places of the others stay as they are.
  for (const word of aliasWords(script, aliases, inside).toSorted((a, b) => b.pos - a.pos)) {
    const text = aliases.get(word.text) ?? '';
    const replaced = withAliases(text, aliases, new Set([...inside, word.text]));
    if (replaced === null || line.slice(word.pos, word.end) !== word.text) return null;
    changed = changed.slice(0, word.pos) + replaced + changed.slice(word.end);
  }
  return changed;
}

/** Returns the words of a line that name an alias: those of commands, and the one behind an alias that ends with a
 * blank. */
function aliasWords(
  script: ParsedScript,
  aliases: ReadonlyMap<string, string>,
  inside: ReadonlySet<string>,
): readonly Word[] {
  const isAlias = (word: Word): boolean => isPlain(word) && aliases.has(word.text) && !inside.has(word.text);
  return commandsIn(script).flatMap(({ name, args }) => {
    if (!name) return [];
    const words = [name, ...args.filter((arg): arg is Word => arg.type === 'Word')];
    const found: Word[] = [];
    for (const word of words) {
      if (!isAlias(word)) break;
      found.push(word);
      if (!/\s$/.test(aliases.get(word.text) ?? '')) break;
    }
    return found;
  });
}

/** A quoted or escaped word is no alias. */
function isPlain({ text, value, parts }: Word): boolean {
  return parts === undefined && text === value;
}

/** Returns the functions that a line needs; null where one of them is not understood. */
function usedFunctions(line: string, functions: ReadonlyMap<string, string>): readonly string[] | null {
  const used = new Set<string>();
  const left = [line];
  for (let text = left.pop(); text !== undefined; text = left.pop()) {
    const script = readable(text);
    if (script === null) return null;
    for (const { name } of commandsIn(script)) {
      const definition = name ? functions.get(name.value) : undefined;
      if (!name || definition === undefined || used.has(name.value)) continue;
      used.add(name.value);
      left.push(definition);
    }
  }
  return [...used].toSorted();
}

function readable(line: string): ParsedScript | null {
  try {
    const script = parse(line);
    return script.errors && script.errors.length > 0 ? null : script;
  } catch {
    return null;
  }
}

/** Returns every command of a script, those of substitutions among them. */
function commandsIn(script: ParsedScript): readonly Command[] {
  const found: Command[] = [];
  const visit = (node: SyntaxNode): void => {
    if (node.type === 'Command') found.push(node);
    forEachChild(node, visit);
  };
  visit(script);
  return found;
}

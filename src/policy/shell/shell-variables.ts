import {
  forEachChild,
  type ArithmeticBinary,
  type Assignment,
  type Command,
  type ParameterExpansionPart,
  type SyntaxNode,
  type Word,
} from 'unbash';
import { isCount, letTargets } from './shell-expansions.js';
import { resolveWord } from './shell-words.js';
import type { Scan, Variable } from './shell-types.js';

const maxValues = 16;
const numericValue = /^-?\d+$|^\{-?\d+\.\.-?\d+(?:\.\.-?\d+)?\}$|^\$\(\(.*\)\)$|^\$\{#\w+\}$|^\$[?#]$/s;

/** Records what a script assigns and which functions it defines, before it is judged: a value counts wherever it was
 * assigned, so that neither order nor branches matter. A second value is one more possibility; what is read from input
 * is unknown. */
export function collectNames(root: SyntaxNode, scan: Scan): void {
  const visit = (node: SyntaxNode): void => {
    switch (node.type) {
      case 'Function':
        scan.functions.add(node.name.value);
        break;
      case 'Assignment':
        assign(node, scan);
        break;
      case 'For':
        loop(node.name.value, node.wordlist, scan);
        break;
      case 'Select':
        forget(node.name.value, scan);
        break;
      case 'Coproc':
        forget(node.name?.value ?? 'COPROC', scan);
        break;
      case 'FileDescriptorVariable':
        entry(node.name, scan).known = false;
        break;
      case 'ParameterExpansion':
        preset(node, scan);
        break;
      case 'Command':
        filled(node.name?.value ?? '', node.args, scan);
        break;
      case 'ArithmeticBinary':
        calculated(node, scan);
        break;
      case 'ArithmeticUnary':
        if (node.operator === '++' || node.operator === '--')
          counted(node.operand.type === 'ArithmeticWord' ? node.operand.value.trim() : '', scan);
        break;
      default:
        break;
    }
    forEachChild(node, visit);
  };
  visit(root);
}

function entry(name: string, scan: Scan): Variable {
  const found = scan.variables.get(name);
  if (found) return found;
  const made: Variable = { values: new Set(), known: true, numeric: true, glob: false };
  scan.variables.set(name, made);
  return made;
}

function calculated({ operator, left }: ArithmeticBinary, scan: Scan): void {
  const assigns = operator.endsWith('=') && !/^[=!<>]=$/.test(operator);
  if (assigns && left.type === 'ArithmeticWord') entry(left.value.trim(), scan);
}

function counted(name: string, scan: Scan): void {
  if (/^\w+$/.test(name) && scan.variables.has(name)) entry(name, scan).known = false;
}

function forget(name: string, scan: Scan): void {
  if (!/^[A-Za-z_]\w*$/.test(name)) return;
  const variable = entry(name, scan);
  variable.known = false;
  variable.numeric = false;
}

function assign(node: Assignment, scan: Scan): void {
  if (node.append === true || node.index || node.value.type === 'ArrayValue') {
    forget(node.name, scan);
    return;
  }
  add(node.name, node.value, scan);
}

function add(name: string, word: Word, scan: Scan): void {
  const variable = entry(name, scan);
  if (!numericValue.test(word.text) && !isCount(word.text, scan)) variable.numeric = false;
  const args = resolveWord(word, scan);
  for (const arg of args) {
    if (arg.dynamic || arg.substitution !== 'none') variable.known = false;
    if (arg.glob) variable.glob = true;
    for (const value of arg.values) variable.values.add(value);
  }
  if (variable.values.size > maxValues) variable.known = false;
}

function loop(name: string, wordlist: readonly Word[] | undefined, scan: Scan): void {
  if (!wordlist) {
    forget(name, scan);
    return;
  }
  for (const word of wordlist) add(name, word, scan);
}

/** `${name:=value}` */
function preset({ parameter, index, operation }: ParameterExpansionPart, scan: Scan): void {
  if (operation?.type !== 'Default' || !operation.operator.endsWith('=')) return;
  if (index) forget(parameter, scan);
  else add(parameter, operation.operand, scan);
}

/** Builtin commands that fill variables, with those that they fill without being told. */
const fillers = new Map([
  ['read', 'REPLY'],
  ['mapfile', 'MAPFILE'],
  ['readarray', 'MAPFILE'],
  ['getopts', 'OPTARG'],
  ['printf', ''],
  ['unset', ''],
  ['local', ''],
  ['declare', ''],
  ['typeset', ''],
  ['readonly', ''],
  ['export', ''],
  ['wait', ''],
]);

function filled(command: string, args: Command['args'], scan: Scan): void {
  const untold = fillers.get(command);
  if (command === 'let')
    for (const { text } of args) for (const name of letTargets(text)) entry(name, scan).known = false;
  if (untold === undefined) return;
  forget(untold, scan);
  for (const arg of args) if (arg.type === 'Word') for (const name of named(arg)) forget(name, scan);
}

/** What a word may name as a variable: alone, behind the letters of an option (`-aname`), before a value or an
 * index. */
function named({ text, value }: Word): readonly string[] {
  return [text, value, value.replace(/^-\w*?[apv]/, ''), value.replace(/[=[+].*$/s, '')];
}

import { forEachChild, type Assignment, type SyntaxNode, type Word } from 'unbash';
import { resolveWord } from './shell-words.js';
import type { Scan, Variable } from './shell-types.js';

const maxValues = 16;
const numericValue = /^-?\d+$|^\{-?\d+\.\.-?\d+(?:\.\.-?\d+)?\}$|^\$\(\(.*\)\)$|^\$\{#\w+\}$|^\$[?#]$/s;

/** Records what a script assigns and which functions it defines, before it is judged: a value counts wherever it was assigned, so that
 *  neither order nor branches matter. A second value is one more possibility; what is read from input is unknown. */
export function collectNames(root: SyntaxNode, scan: Scan): void {
  const visit = (node: SyntaxNode): void => {
    switch (node.type) {
      case 'Function': scan.functions.add(node.name.value); break;
      case 'Assignment': assign(node, scan); break;
      case 'For': loop(node.name.value, node.wordlist, scan); break;
      case 'Select': forget(node.name.value, scan); break;
      case 'Command': filled(node.name?.value ?? '', node.args, scan); break;
      case 'ArithmeticBinary': if (node.operator.endsWith('=') && node.left.type === 'ArithmeticWord' && !/^[=!<>]=$/.test(node.operator)) entry(node.left.value.trim(), scan); break;
      case 'ArithmeticUnary': if (node.operator === '++' || node.operator === '--') counted(node.operand.type === 'ArithmeticWord' ? node.operand.value.trim() : '', scan); break;
      default: break;
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
  if (node.append === true || node.index || node.value.type === 'ArrayValue') { forget(node.name, scan); return; }
  add(node.name, node.value, scan);
}

function add(name: string, word: Word, scan: Scan): void {
  const variable = entry(name, scan);
  if (!numericValue.test(word.text)) variable.numeric = false;
  const args = resolveWord(word, scan);
  for (const arg of args) {
    if (arg.dynamic || arg.substitution !== 'none') variable.known = false;
    if (arg.glob) variable.glob = true;
    for (const value of arg.values) variable.values.add(value);
  }
  if (variable.values.size > maxValues) variable.known = false;
}

function loop(name: string, wordlist: readonly Word[] | undefined, scan: Scan): void {
  if (!wordlist) { forget(name, scan); return; }
  for (const word of wordlist) add(name, word, scan);
}

const fillers = new Set(['read', 'mapfile', 'readarray', 'getopts', 'printf', 'unset', 'local', 'declare', 'typeset', 'wait']);

function filled(command: string, args: readonly { readonly type: string; readonly text: string }[], scan: Scan): void {
  if (!fillers.has(command)) return;
  for (const arg of args) if (arg.type === 'Word') forget(arg.text, scan);
}

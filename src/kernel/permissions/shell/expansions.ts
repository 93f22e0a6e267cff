import {
  type ArithmeticBinary,
  type ArithmeticExpression,
  type Assignment,
  type Command,
  forEachChild,
  type LiteralPart,
  type ParameterExpansionPart,
  type SyntaxNode,
  type TestExpression,
  type Word,
  type WordPart,
} from 'unbash';
import { setFindings } from './assignments.js';
import { type Finding, quoted, type OptionScan, unanalysable, type Variable } from './invocation.js';
import { resolveWord } from './words.js';

const numeric = /^[\d\s#]*$|^0x[\da-f]+$/i;
const countsOnly =
  /^\$\(\s*(?:wc\s+-[lcmw]\b[^|;&$`]*|nproc|date\s+\+%[sNYmdHM]+|expr\s[\d\s+*-]+|[^|;&$`]*\|\s*wc\s+-[lcmw]\s*)\)$/;

/** Judges what an expansion does besides giving a value: `${x@P}` runs what x holds, `${!x}` names a variable by
 * another, an index is arithmetic. */
export function expansionFindings(part: ParameterExpansionPart, scan: OptionScan): readonly Finding[] {
  const { operation, index } = part;
  if (index && !plainIndex(index, scan)) return unanalysable(`the index in ${part.text} is evaluated when it runs`);
  if (part.prefix === '!' && operation?.type !== 'Names' && !isListOfKeys(index))
    return unanalysable(`${part.text} names a variable by the value of another`);
  const why = operation ? operationProblem(operation, scan) : null;
  if (why !== null) return unanalysable(`${part.text} ${why}`);
  const assigns = operation?.type === 'Default' && operation.operator.endsWith('=');
  return assigns ? setFindings(part.parameter, operation.operand.value, scan) : [];
}

type Operation = NonNullable<ParameterExpansionPart['operation']>;

function operationProblem(operation: Operation, scan: OptionScan): string | null {
  switch (operation.type) {
    case 'Transform':
      return operation.operand.text === 'P' ? 'runs the value of the variable' : null;
    case 'Slice':
      return [operation.offset, operation.length].every((word) => !word || numericWord(word, scan))
        ? null
        : 'has bounds that are evaluated when it runs';
    case 'Unknown':
      return 'is an unknown expansion';
    case 'Default':
    case 'Remove':
    case 'CaseModification':
      return hidesCommand(operation.operand) ? 'hides a command' : null;
    case 'Replace':
      return hidesCommand(operation.pattern) || hidesCommand(operation.replacement) ? 'hides a command' : null;
    case 'Names':
      return null;
    default:
      operation satisfies never;
      return null;
  }
}

/** An assignment, before a command or alone. */
export function assignmentFindings(node: Assignment, scan: OptionScan): readonly Finding[] {
  const plain = node.value.type === 'Word' || node.value.elements.every(({ text }) => plainElement(text, scan));
  const indexed = (node.index && !plainIndex(node.index, scan)) || !plain;
  if (indexed) return unanalysable(`the index in ${quoted(node.text)} is evaluated when it runs`);
  const value = node.value.type === 'Word' ? node.value.text : '';
  return setFindings(node.name, value.replace(/^(["'])(.*)\1$/s, '$2'), scan);
}

function isListOfKeys(index: Word | undefined): boolean {
  return index?.text === '@' || index?.text === '*';
}

/** True for an index that arithmetic reads as a number, or that can only be a key: it holds no name that the script
 * assigns. */
function plainIndex(index: Word, scan: OptionScan): boolean {
  return isListOfKeys(index) || numericWord(index, scan) || plainKey(index.text, scan);
}

function plainKey(text: string, scan: OptionScan): boolean {
  const bare = text.replace(/^(["'])(.*)\1$/s, '$2');
  const names = [...bare.matchAll(/[A-Za-z_]\w*/g)];
  return /^[\w .:/-]+$/.test(bare) && names.every(([name]) => scan.variables.get(name)?.numeric ?? true);
}

/** The same for an element of a list in parentheses. It may name its index: `[key]=value`. */
function plainElement(text: string, scan: OptionScan): boolean {
  const index = /^\[(.*?)\]\+?=/s.exec(text)?.[1];
  const variable = /^"?\$\{?(\w+)\}?"?$/.exec(index ?? '')?.[1];
  if (index === undefined || plainKey(index, scan)) return true;
  return variable !== undefined && scan.variables.get(variable)?.numeric === true;
}

function hidesCommand(word: Word | undefined): boolean {
  return word !== undefined && /\$\(|`|<\(|\$\{ /.test(word.text);
}

/** True for a word that arithmetic reads as a number and nothing else. */
function numericWord(word: Word, scan: OptionScan): boolean {
  if (!word.parts) return numericText(word.value.trim(), scan);
  return numericParts(word.parts, scan);
}

/** Next to an expansion, a name is only a part of one: `a$i` may be any variable. */
function numericParts(parts: readonly WordPart[], scan: OptionScan): boolean {
  const alone = parts.length === 1;
  const isPartOfName = (part: WordPart): part is LiteralPart => part.type === 'Literal' && !alone;
  return parts.every((part) => (isPartOfName(part) ? numeric.test(part.value.trim()) : numericPart(part, scan)));
}

function numericPart(part: WordPart, scan: OptionScan): boolean {
  switch (part.type) {
    case 'Literal':
      return numericText(part.value.trim(), scan);
    case 'SimpleExpansion':
      return /^\$[?#$!]$/.test(part.text) || scan.variables.get(part.text.slice(1))?.numeric === true;
    case 'ParameterExpansion':
      return part.prefix === '#' || (!part.operation && scan.variables.get(part.parameter)?.numeric === true);
    case 'DoubleQuoted':
      return numericParts(part.parts, scan);
    case 'ArithmeticExpansion':
      return true;
    case 'CommandExpansion':
      return isCount(part.text, scan);
    default:
      return false;
  }
}

/** A substitution that prints a number and nothing else. */
function isCount(text: string, scan: OptionScan): boolean {
  return countsOnly.test(text) && !['wc', 'nproc', 'date', 'expr'].some((name) => scan.functions.has(name));
}

function numericText(text: string, scan: OptionScan): boolean {
  return numeric.test(text.replace(/^-/, '')) || scan.variables.get(text)?.numeric === true;
}

/** Arithmetic evaluates the values of its variables, and an index among them runs substitutions: only numbers and
 * variables that the script itself fills with numbers are harmless. */
export function arithmeticFindings(
  expression: ArithmeticExpression | undefined,
  text: string,
  scan: OptionScan,
): readonly Finding[] {
  if (!expression) return /^[\s\d+*/%()<>=!&|^~-]*$/.test(text) ? [] : unanalysable(`the arithmetic ${text}`);
  const harmless = harmlessArithmetic(expression, scan);
  if (!harmless) return unanalysable(`the arithmetic ${text} evaluates values known only when it runs`);
  return assignedIn(expression).flatMap((name) => setFindings(name, '0', scan));
}

/** The variables that arithmetic assigns. */
function assignedIn(node: ArithmeticExpression): readonly string[] {
  switch (node.type) {
    case 'ArithmeticBinary':
      return [...target(node.operator, node.left), ...assignedIn(node.left), ...assignedIn(node.right)];
    case 'ArithmeticUnary':
      return [...target(node.operator, node.operand), ...assignedIn(node.operand)];
    case 'ArithmeticTernary':
      return [node.test, node.consequent, node.alternate].flatMap(assignedIn);
    case 'ArithmeticGroup':
      return assignedIn(node.expression);
    case 'ArithmeticWord':
    case 'ArithmeticCommandExpansion':
      return [];
    default:
      node satisfies never;
      return [];
  }
}

function target(operator: string, node: ArithmeticExpression): readonly string[] {
  const assigns = /^(?:[-+*/%&|^]|<<|>>)?=$|^\+\+$|^--$/.test(operator);
  return assigns && node.type === 'ArithmeticWord' ? [node.value.trim()] : [];
}

/** A text that `let` evaluates: operators, numbers and variables that the script itself fills with numbers. */
export function letFindings(text: string, scan: OptionScan): readonly Finding[] {
  const read = [...text.replace(/[A-Za-z_]\w*\s*=(?!=)/g, ' ').matchAll(/[A-Za-z_]\w*/g)];
  const numbers = read.every(([name]) => scan.variables.get(name)?.numeric === true);
  const plain = /^[\w\s+*/%()<>=!&|^~?:,-]+$/.test(text) && numbers;
  if (!plain) return unanalysable('let evaluates its arguments');
  return letTargets(text).flatMap((name) => setFindings(name, '0', scan));
}

/** The variables that a text for `let` assigns. */
function letTargets(text: string): readonly string[] {
  return [...text.matchAll(/[A-Za-z_]\w*(?=\s*(?:[-+*/%&|^]|<<|>>)?=(?!=))/g)].map(([name]) => name);
}

function harmlessArithmetic(node: ArithmeticExpression, scan: OptionScan): boolean {
  switch (node.type) {
    case 'ArithmeticBinary':
      return (
        (isAssignment(node.operator) || harmlessArithmetic(node.left, scan)) &&
        harmlessArithmetic(node.right, scan) &&
        plainTarget(node.left)
      );
    case 'ArithmeticUnary':
      return harmlessArithmetic(node.operand, scan);
    case 'ArithmeticTernary':
      return [node.test, node.consequent, node.alternate].every((inner) => harmlessArithmetic(inner, scan));
    case 'ArithmeticGroup':
      return harmlessArithmetic(node.expression, scan);
    case 'ArithmeticWord':
      return node.parts ? numericParts(node.parts, scan) : numericText(node.value.trim(), scan);
    case 'ArithmeticCommandExpansion':
      return isCount(node.text, scan);
    default:
      node satisfies never;
      return false;
  }
}

function isAssignment(operator: string): boolean {
  return operator === '=';
}

function plainTarget(node: ArithmeticExpression): boolean {
  return node.type !== 'ArithmeticWord' || !node.value.includes('[');
}

const arithmeticTests = new Set(['-eq', '-ne', '-lt', '-le', '-gt', '-ge']);

/** `[[ … ]]`: operators such as `-eq` evaluate both sides as arithmetic, `-v` evaluates an index. */
export function testFindings(node: TestExpression, scan: OptionScan): readonly Finding[] {
  switch (node.type) {
    case 'TestUnary':
      return (node.operator === '-v' || node.operator === '-R') && !/^\w+$/.test(node.operand.text)
        ? unanalysable(`[[ ${node.operator} ${node.operand.text} ]] evaluates an index`)
        : [];
    case 'TestBinary':
      return arithmeticTests.has(node.operator) && !(numericWord(node.left, scan) && numericWord(node.right, scan))
        ? unanalysable(`[[ ${node.left.text} ${node.operator} ${node.right.text} ]] evaluates its operands`)
        : [];
    case 'TestLogical':
      return node.operands.flatMap((operand) => testFindings(operand, scan));
    case 'TestNot':
      return testFindings(node.operand, scan);
    case 'TestGroup':
      return testFindings(node.expression, scan);
    default:
      node satisfies never;
      return [];
  }
}

const maxValues = 16;
const numericValue = /^-?\d+$|^\{-?\d+\.\.-?\d+(?:\.\.-?\d+)?\}$|^\$\(\(.*\)\)$|^\$\{#\w+\}$|^\$[?#]$/s;

/** Records what a script assigns and which functions it defines, before it is judged: a value counts wherever it was
 * assigned, so that neither order nor branches matter. A second value is one more possibility; what is read from input
 * is unknown. */
export function collectNames(root: SyntaxNode, scan: OptionScan): void {
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

function entry(name: string, scan: OptionScan): Variable {
  const found = scan.variables.get(name);
  if (found) return found;
  const made: Variable = { values: new Set(), known: true, numeric: true, glob: false };
  scan.variables.set(name, made);
  return made;
}

function calculated({ operator, left }: ArithmeticBinary, scan: OptionScan): void {
  const assigns = operator.endsWith('=') && !/^[=!<>]=$/.test(operator);
  if (assigns && left.type === 'ArithmeticWord') entry(left.value.trim(), scan);
}

function counted(name: string, scan: OptionScan): void {
  if (/^\w+$/.test(name) && scan.variables.has(name)) entry(name, scan).known = false;
}

function forget(name: string, scan: OptionScan): void {
  if (!/^[A-Za-z_]\w*$/.test(name)) return;
  const variable = entry(name, scan);
  variable.known = false;
  variable.numeric = false;
}

function assign(node: Assignment, scan: OptionScan): void {
  if (node.append === true || node.index || node.value.type === 'ArrayValue') {
    forget(node.name, scan);
    return;
  }
  add(node.name, node.value, scan);
}

function add(name: string, word: Word, scan: OptionScan): void {
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

function loop(name: string, wordlist: readonly Word[] | undefined, scan: OptionScan): void {
  if (!wordlist) {
    forget(name, scan);
    return;
  }
  for (const word of wordlist) add(name, word, scan);
}

/** `${name:=value}` */
function preset({ parameter, index, operation }: ParameterExpansionPart, scan: OptionScan): void {
  if (operation?.type !== 'Default' || !operation.operator.endsWith('=')) return;
  if (index) forget(parameter, scan);
  else add(parameter, operation.operand, scan);
}

/** Builtin commands that fill variables, with the one that each fills by default. */
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

function filled(command: string, args: Command['args'], scan: OptionScan): void {
  const untold = fillers.get(command);
  if (command === 'let')
    for (const { text } of args) for (const name of letTargets(text)) entry(name, scan).known = false;
  if (untold === undefined) return;
  forget(untold, scan);
  for (const arg of args) if (arg.type === 'Word') for (const name of candidateNames(arg)) forget(name, scan);
}

/** Returns the texts of a word that may name a variable: all of it, without the letters of an option (`-aname`),
 * without a value or an index. */
function candidateNames({ text, value }: Word): readonly string[] {
  return [text, value, value.replace(/^-\w*?[apv]/, ''), value.replace(/[=[+].*$/s, '')];
}

import type { ArithmeticExpression, ParameterExpansionPart, TestExpression, Word, WordPart } from 'unbash';
import { unanalysable } from './shell-findings.js';
import type { Finding, Scan } from './shell-types.js';

const numeric = /^[\d\s#]*$|^0x[\da-f]+$/i;
const countsOnly = /^\$\(\s*(?:wc\s+-[lcmw]\b[^|;&$`]*|nproc|date\s+\+%[sNYmdHM]+|expr\s[\d\s+*-]+|[^|;&$`]*\|\s*wc\s+-[lcmw]\s*)\)$/;

/** What an expansion does beside giving a value: `${x@P}` runs what x holds, `${!x}` names a variable by another, an index is arithmetic. */
export function expansionFindings(part: ParameterExpansionPart, scan: Scan): readonly Finding[] {
  const { operation, index } = part;
  if (index && !plainIndex(index, scan)) return unanalysable(`the index in ${part.text} is evaluated when it runs`);
  if (part.prefix === '!' && operation?.type !== 'Names' && !isListOfKeys(index)) return unanalysable(`${part.text} names a variable by the value of another`);
  const why = operation ? operationProblem(operation, scan) : null;
  return why === null ? [] : unanalysable(`${part.text} ${why}`);
}

type Operation = NonNullable<ParameterExpansionPart['operation']>;

function operationProblem(operation: Operation, scan: Scan): string | null {
  switch (operation.type) {
    case 'Transform': return operation.operand.text === 'P' ? 'runs what the variable holds' : null;
    case 'Slice': return [operation.offset, operation.length].every((word) => !word || numericWord(word, scan)) ? null : 'has bounds that are evaluated when it runs';
    case 'Unknown': return 'is an expansion that is not known';
    case 'Default':
    case 'Remove':
    case 'CaseModification': return hidesCommand(operation.operand) ? 'hides a command' : null;
    case 'Replace': return hidesCommand(operation.pattern) || hidesCommand(operation.replacement) ? 'hides a command' : null;
    case 'Names': return null;
    default: operation satisfies never; return null;
  }
}

function isListOfKeys(index: Word | undefined): boolean {
  return index?.text === '@' || index?.text === '*';
}

function plainIndex(index: Word, scan: Scan): boolean {
  return isListOfKeys(index) || numericWord(index, scan) || /^"?[\w.-]+"?$/.test(index.text) && /^\D/.test(index.text) && !scan.variables.has(index.text);
}

function hidesCommand(word: Word | undefined): boolean {
  return word !== undefined && /\$\(|`|<\(|\$\{ /.test(word.text);
}

/** True for a word that arithmetic reads as a number and nothing else. */
export function numericWord(word: Word, scan: Scan): boolean {
  if (!word.parts) return numericText(word.value.trim(), scan);
  return word.parts.every((part) => numericPart(part, scan));
}

function numericPart(part: WordPart, scan: Scan): boolean {
  switch (part.type) {
    case 'Literal': return numericText(part.value.trim(), scan);
    case 'SimpleExpansion': return /^\$[?#$!]$/.test(part.text) || scan.variables.get(part.text.slice(1))?.numeric === true;
    case 'ParameterExpansion': return part.prefix === '#' || (!part.operation && scan.variables.get(part.parameter)?.numeric === true);
    case 'DoubleQuoted': return part.parts.every((inner) => numericPart(inner, scan));
    case 'ArithmeticExpansion': return true;
    case 'CommandExpansion': return countsOnly.test(part.text);
    default: return false;
  }
}

function numericText(text: string, scan: Scan): boolean {
  return numeric.test(text.replace(/^-/, '')) || scan.variables.get(text)?.numeric === true;
}

/** Arithmetic evaluates the values of its variables, and an index among them runs substitutions: only numbers and variables that the
 *  script itself fills with numbers are harmless. */
export function arithmeticFindings(expression: ArithmeticExpression | undefined, text: string, scan: Scan): readonly Finding[] {
  if (!expression) return /^[\s\d+*/%()<>=!&|^~-]*$/.test(text) ? [] : unanalysable(`the arithmetic ${text}`);
  return harmlessArithmetic(expression, scan) ? [] : unanalysable(`the arithmetic ${text} evaluates values known only when it runs`);
}

function harmlessArithmetic(node: ArithmeticExpression, scan: Scan): boolean {
  switch (node.type) {
    case 'ArithmeticBinary': return (isAssignment(node.operator) || harmlessArithmetic(node.left, scan)) && harmlessArithmetic(node.right, scan) && plainTarget(node.left);
    case 'ArithmeticUnary': return harmlessArithmetic(node.operand, scan);
    case 'ArithmeticTernary': return [node.test, node.consequent, node.alternate].every((inner) => harmlessArithmetic(inner, scan));
    case 'ArithmeticGroup': return harmlessArithmetic(node.expression, scan);
    case 'ArithmeticWord': return node.parts ? node.parts.every((part) => numericPart(part, scan)) : numericText(node.value.trim(), scan);
    case 'ArithmeticCommandExpansion': return countsOnly.test(node.text);
    default: node satisfies never; return false;
  }
}

function isAssignment(operator: string): boolean {
  return operator === '=';
}

function plainTarget(node: ArithmeticExpression): boolean {
  return node.type !== 'ArithmeticWord' || !node.value.includes('[');
}

const arithmeticTests = new Set(['-eq', '-ne', '-lt', '-le', '-gt', '-ge']);

/** `[[ … ]]`: `-eq` and its kin evaluate both sides as arithmetic, `-v` an index. */
export function testFindings(node: TestExpression, scan: Scan): readonly Finding[] {
  switch (node.type) {
    case 'TestUnary': return (node.operator === '-v' || node.operator === '-R') && !/^\w+$/.test(node.operand.text)
      ? unanalysable(`[[ ${node.operator} ${node.operand.text} ]] evaluates an index`) : [];
    case 'TestBinary': return arithmeticTests.has(node.operator) && !(numericWord(node.left, scan) && numericWord(node.right, scan))
      ? unanalysable(`[[ ${node.left.text} ${node.operator} ${node.right.text} ]] evaluates its operands`) : [];
    case 'TestLogical': return node.operands.flatMap((operand) => testFindings(operand, scan));
    case 'TestNot': return testFindings(node.operand, scan);
    case 'TestGroup': return testFindings(node.expression, scan);
    default: node satisfies never; return [];
  }
}

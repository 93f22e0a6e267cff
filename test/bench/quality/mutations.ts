import { parseSync } from 'oxc-parser';

/** One small change to a source: the text from `start` to `end` (UTF-16 units) becomes `text`. */
export interface Mutation {
  readonly start: number;
  readonly end: number;
  readonly text: string;
  readonly what: string;
  /** The expression or statement that holds the change, for code that counts whether it is reached. */
  readonly place: Place;
}

interface Place {
  readonly start: number;
  readonly end: number;
  readonly isStatement: boolean;
  /** It runs when its module is loaded, once in each worker. */
  readonly isTopLevel: boolean;
}

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [field: string]: unknown;
}

const operators: Readonly<Record<string, string>> = {
  '===': '!==',
  '!==': '===',
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '+': '-',
  '-': '+',
  '*': '+',
  '/': '*',
  '&&': '||',
  '||': '&&',
};

/** All places of a TypeScript source where an operator, a condition, a truth value or a call can be changed so that the
 * program still parses. Types are left alone, and so are numbers (a test that repeats a limit tests nothing), the
 * defaults after `??` (most are there for the compiler) and lines for the log. */
export function mutationsOf(path: string, source: string): Mutation[] {
  const found: Mutation[] = [];
  visit(parseSync(path, source).program as unknown as Node, true, (node, isTopLevel) => {
    const { type, start, end } = node;
    const place = { start, end, isStatement: type === 'ExpressionStatement', isTopLevel };
    for (const change of changesTo(node, source)) {
      const test = type === 'IfStatement' ? (node.test as Node) : place;
      found.push({ ...change, place: { ...place, start: test.start, end: test.end } });
    }
  });
  return found;
}

function visit(node: Node, isTopLevel: boolean, take: (node: Node, isTopLevel: boolean) => void): void {
  if (node.type.startsWith('TS') && !hasValue.has(node.type)) return;
  take(node, isTopLevel);
  const isTop = isTopLevel && !/Function|PropertyDefinition/.test(node.type);
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? value : [value]) if (isNode(child)) visit(child, isTop, take);
  }
}

/** Nodes of TypeScript that hold an expression which runs. */
const hasValue = new Set(['TSAsExpression', 'TSSatisfiesExpression', 'TSNonNullExpression']);

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && typeof (value as { type?: unknown }).type === 'string';
}

type Change = Omit<Mutation, 'place'>;

function changesTo(node: Node, source: string): Change[] {
  switch (node.type) {
    case 'BinaryExpression':
    case 'LogicalExpression':
      return operatorChange(node, source);
    case 'IfStatement':
    case 'ConditionalExpression':
      return [negation(node.test as Node, source)];
    case 'Literal':
      return literalChange(node);
    case 'ExpressionStatement':
      return callRemoval(node, source);
    default:
      return [];
  }
}

function operatorChange(node: Node, source: string): Change[] {
  const operator = String(node.operator);
  const other = operators[operator];
  const left = node.left as Node;
  const right = node.right as Node;
  const start = source.indexOf(operator, left.end);
  if (other === undefined || start < 0 || start >= right.start) return [];
  if (
    operator === '+' &&
    [left, right].some((side) => typeof side.value === 'string' || side.type === 'TemplateLiteral')
  )
    return [];
  return [{ start, end: start + operator.length, text: other, what: `${operator} became ${other}` }];
}

function negation(test: Node, source: string): Change {
  return {
    start: test.start,
    end: test.end,
    text: `!(${source.slice(test.start, test.end)})`,
    what: 'the condition is negated',
  };
}

function literalChange({ start, end, value }: Node): Change[] {
  if (typeof value === 'boolean') return [{ start, end, text: String(!value), what: `${value} became ${!value}` }];
  return [];
}

function callRemoval(node: Node, source: string): Change[] {
  const expression = node.expression as Node;
  const call = expression.type === 'AwaitExpression' ? (expression.argument as Node) : expression;
  if (call.type !== 'CallExpression') return [];
  const callee = source.slice(call.start, (call.callee as Node).end);
  if (callee === 'super' || /(?:^|\.)log$/.test(callee)) return [];
  return [{ start: node.start, end: node.end, text: 'void 0;', what: 'the call is gone' }];
}

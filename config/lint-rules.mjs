/** The rules of our own linter plugin. */

const functions = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression']);

/** Returns true for an array that is written out in the source, and for a choice between such arrays. */
function isWrittenOut(node) {
  if (node === null || node === undefined) return false;
  if (node.type === 'ArrayExpression') return node.elements.every((element) => element?.type !== 'SpreadElement');
  if (node.type === 'ConditionalExpression') return isWrittenOut(node.consequent) && isWrittenOut(node.alternate);
  if (node.type === 'TSAsExpression' || node.type === 'TSSatisfiesExpression') return isWrittenOut(node.expression);
  return false;
}

/** Returns true if `name` is the rest parameter of a function around `node`: its length was written at the call. */
function isRestParameter(node, name) {
  for (let around = node.parent; around; around = around.parent) {
    if (!functions.has(around.type)) continue;
    const last = around.params.at(-1);
    if (last?.type === 'RestElement' && last.argument.type === 'Identifier' && last.argument.name === name) return true;
  }
  return false;
}

/** Returns true if `name` is a constant of the module whose value is an array that is written out. */
function isConstant(program, name) {
  return program.body
    .map((statement) => (statement.type === 'ExportNamedDeclaration' ? statement.declaration : statement))
    .filter((statement) => statement?.type === 'VariableDeclaration' && statement.kind === 'const')
    .flatMap((statement) => statement.declarations)
    .some(({ id, init }) => id.type === 'Identifier' && id.name === name && isWrittenOut(init));
}

/** Arguments lie on the stack: a list of some 100,000 that is spread into a call ends the program with "Maximum call
 * stack size exceeded". Allowed are spreads whose length the source states: an array that is written out, a constant
 * of the module that is one, and the rest parameter of the function around. */
const noDataInArguments = {
  create(context) {
    // Only the program reads data of others; the scripts here and the tests do not.
    if (!/\.tsx?$/.test(context.filename) || /[\\/]test[\\/]/.test(context.filename)) return {};
    const program = context.sourceCode.ast;
    const check = (node) => {
      for (const { type, argument } of node.arguments) {
        if (type !== 'SpreadElement' || isWrittenOut(argument)) continue;
        const isName = argument.type === 'Identifier';
        if (isName && (isRestParameter(node, argument.name) || isConstant(program, argument.name))) continue;
        context.report({
          node: argument,
          message: 'A list whose length comes from data is spread into arguments. Use a loop, or core/lists.',
        });
      }
    };
    return { CallExpression: check, NewExpression: check };
  },
};

export default { meta: { name: 'own' }, rules: { 'no-data-in-arguments': noDataInArguments } };

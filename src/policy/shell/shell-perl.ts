/** True for a program of perl that only replaces or transliterates text: no code in the pattern or the replacement. */
export function isPlainPerl(code: string): boolean {
  if (code.length > 2000 || /[`]|[@$]\{|\(\?{1,2}\{|\(\?\?|\\0/.test(code)) return false;
  return code
    .split(/;\s*(?=s\W|tr\W|y\W|$)/)
    .every((statement) => statement.trim() === '' || isReplacement(statement.trim()));
}

const replacement =
  /^(?:s|tr|y)([/|#,!%~])((?:\\.|(?!\1)[^\\])*)\1((?:\\.|(?!\1)[^\\])*)\1([gimsxcdr]*)(?:\s+(?:if|unless)\s+(?:\/(?:\\.|[^/\\])*\/[i]?|\d+\s*\.\.\s*\d+|\$\.\s*[=<>]=?\s*\d+))?$/s;
const braces = /^s\{((?:\\.|[^{}\\])*)\}\s*\{((?:\\.|[^{}\\])*)\}([gimsx]*)$/s;

function isReplacement(statement: string): boolean {
  const [, , , text] = replacement.exec(statement) ?? braces.exec(statement) ?? [];
  return text !== undefined && !/@\w+\s*\[|\$\w+\s*->/.test(text);
}

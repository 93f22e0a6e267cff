import type { ToolSchemas } from './text-calls.js';
import { createTextScanner } from './text-scanner.js';

/** What no call is without: most answers are not looked at more closely. */
const hint =
  /"(?:name|tool|tools?_calls?|function)"|[<[](?:[|｜/]|tool|TOOL|func|invoke|minimax|seed:)|<start_function_call>|functools|call:\w|to=\w/;
/** Markup of models whose calls this program does not read. Sources: the templates of LFM2, Gemma, gpt-oss, Apertus,
 * Kimi K3, OLMo, LM Studio. */
const foreign = new RegExp(
  [
    String.raw`<\|tool_call(?:s|_start)?\|?>`,
    '<start_function_call>',
    '<tool_code>',
    String.raw`<\|tools_prefix\|>`,
    String.raw`\[TOOL_REQUEST\]`,
    String.raw`<\|channel\|>commentary to=\w`,
    '<tool_calls?>',
    '<function_calls?>',
    '<minimax:tool_call>',
    '<seed:tool_call>',
    String.raw`\bcall:\w+\{`,
    '<｜tool▁call',
  ].join('|'),
);

/** True where an answer without calls holds what looks like one, outside code in a line and code in another
 * language. */
export function hasLeakedCall(text: string, tools: ToolSchemas): boolean {
  if (!hint.test(text)) return false;
  const scanner = createTextScanner(tools);
  scanner.push(text);
  if (scanner.end(false).calls.length > 0) return true;
  return (
    /^```tool_(?:code|call)/m.test(text) ||
    foreign.test(text.replace(/^```[\s\S]*?(?:^```|$(?![\s\S]))/gm, '').replace(/`[^`\n]*`/g, ''))
  );
}

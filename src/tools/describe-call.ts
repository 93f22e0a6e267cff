import { wellFormed } from '../core/text.js';
import type { ToolArgs } from '../core/tool.js';

const maxValueChars = 80;
const maxChars = 200;

/** `glob(pattern="*.ts", path="src/")`: name and arguments in the order given, values as JSON, at most 200 characters
 * and well-formed. */
export function describeCall(name: string, args: ToolArgs): string {
  let text = `${name}(`;
  for (const [index, [key, value]] of Object.entries(args).entries()) {
    const part = `${index === 0 ? '' : ', '}${shortened(key, 40)}=${shownValue(value)}`;
    if (text.length + part.length > maxChars - 4) return `${text}${index === 0 ? '' : ', '}…)`;
    text += part;
  }
  return `${text})`;
}

function shownValue(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(shortened(value, maxValueChars));
  return shortened(JSON.stringify(value) ?? 'null', maxValueChars);
}

function shortened(text: string, max: number): string {
  return text.length > max ? `${wellFormed(text.slice(0, max - 1))}…` : wellFormed(text);
}

import { oneLine } from '../config/front-matter.js';
import { effortLevels } from '../core/model-names.js';
import { isServerPattern, isToolPattern } from '../core/tool-patterns.js';
import type { ToolChoice } from '../core/turn-settings.js';
import { claudeNames } from '../tools/foreign-tool-names.js';
import { effortOf, type Fields, firstOf, listedTools, toolMap, workSpellings } from './work-fields.js';

/** Returns sentences, without the path of the file, about values of `readWorkFields` that mean nothing here. */
export function workProblems(fields: Fields): readonly string[] {
  const effort = firstOf(fields, workSpellings.effort);
  const without = firstOf(fields, workSpellings.withoutTools);
  const map = toolMap(fields.get('tools') ?? '');
  return [
    ...unknownEffort(effort.key, effort.value),
    ...noTools(fields, map),
    ...(map === null ? unclearNames('tools', fields.get('tools') ?? '*') : []),
    ...unclearNames(without.key, without.value),
    ...wholeTools(without.key, without.value),
  ];
}

function unknownEffort(key: string, value: string): readonly string[] {
  if (['', 'inherit', 'default', 'auto'].includes(value) || effortOf(value) !== null) return [];
  return [`${key} ${oneLine(value, 40)} is ignored; write one of ${effortLevels.join(', ')}.`];
}

function noTools(fields: Fields, map: object | null): readonly string[] {
  if (!fields.has('tools') || map !== null || listedTools(fields.get('tools') ?? '').length > 0) return [];
  return ['tools names no tool, so there are none; write a list such as tools: Read, Grep.'];
}

/** Reports the entries of a list of tools that mean nothing here. */
function unclearNames(key: string, text: string): readonly string[] {
  const unknown = listedTools(text).filter((name) => !isToolPattern(name));
  if (unknown.length === 0) return [];
  const names = oneLine(unknown.join(', '), 100);
  const verb = unknown.length === 1 ? 'is' : 'are';
  return [
    `${key} ${names} ${verb} ignored; write the name of a tool, mcp__server, mcp__server__tool, or a name with *.`,
  ];
}

/** Reports the entries of a list without tools that mean more here. */
function wholeTools(key: string, text: string): readonly string[] {
  const partly = text.match(/[\w-]+\([^)]*\)/g) ?? [];
  if (partly.length === 0) return [];
  const rules = 'use rules.deny in the settings for single commands and paths.';
  return [`${key} ${oneLine(partly.join(', '), 100)} disables the whole tool; ${rules}`];
}

/** Returns the names of a choice that mean nothing unless there is a tool of that name here. */
export function namesToCheck({ tools, withoutTools }: ToolChoice): readonly string[] {
  const isOwn = (name: string): boolean =>
    !name.includes('*') && !isServerPattern(name) && (/^\p{Lu}/u.test(name) || claudeNames(name) === null);
  return [...(tools ?? []), ...withoutTools].filter(isOwn);
}

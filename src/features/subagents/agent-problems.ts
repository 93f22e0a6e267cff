import { type FrontMatter, oneLine } from '../../kernel/config/front-matter.js';
import { allowedToolsKeys, workKeys } from '../../kernel/console/work-fields.js';
import { workProblems } from '../../kernel/console/work-problems.js';
import { type AgentFields, type FoundAgents, modeOf } from './roles.js';

/** Returns the mistakes in files of agents, as sentences. */
export function problemsOf({ problems, read }: Pick<FoundAgents, 'problems' | 'read'>): readonly string[] {
  return [...problems, ...read.flatMap(ignored)];
}

/** `color` is for the screen of another program. */
const knownKeys: readonly string[] = [
  ...['name', 'description', 'maxTurns', 'max-turns', 'max_turns', 'skills', 'permissionMode', 'permission-mode'],
  ...['memory', 'color', 'background', 'isolation'],
  ...workKeys.filter((key) => !allowedToolsKeys.includes(key)),
];

/** The servers that an agent names are those of its session. One that is written out in the file is not started. */
const serverKeys: readonly string[] = ['mcpServers', 'mcp-servers'];

function ignored({ path, fields }: AgentFields): readonly string[] {
  const mode = (fields.get('permissionMode') ?? fields.get('permission-mode'))?.trim() ?? 'default';
  const others = [...fields.keys()]
    .filter((key) => !knownKeys.includes(key) && !serverKeys.includes(key))
    .map((key) => oneLine(key, 40));
  const writtenOut = serverKeys.filter((key) => fields.has(key) && !/^[\w .,-]+$/.test(fields.get(key) ?? ''));
  return [
    ...writtenOut.map((key) => `${path}: the servers in ${key} are not started; add them with agent mcp add.`),
    ...(others.length > 0 ? [`${path}: ${others.join(', ')} ${others.length === 1 ? 'is' : 'are'} ignored.`] : []),
    ...(mode !== 'default' && modeOf(mode) === null
      ? [`${path}: permissionMode ${oneLine(mode, 40)} is ignored; an agent may only be stricter than its session.`]
      : []),
    ...workProblems(fields).map((problem) => `${path}: ${problem}`),
    ...unknownValue(path, fields, 'background', ['true', 'false']),
    ...unknownValue(path, fields, 'isolation', ['worktree']),
  ];
}

/** Reports a field whose value means nothing. */
function unknownValue(
  path: string,
  fields: FrontMatter['fields'],
  key: string,
  values: readonly string[],
): readonly string[] {
  const value = fields.get(key)?.trim() ?? '';
  if (value === '' || values.includes(value)) return [];
  return [`${path}: ${key} ${oneLine(value, 40)} is ignored; write ${key}: ${values.join(' or ')}.`];
}

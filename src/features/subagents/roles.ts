import { createHash } from 'node:crypto';
import { basename } from 'node:path';
import type { EffortLevel } from '../../kernel/core/model-names.js';
import { type ApprovalMode, onlyReading, type Policy, type Verdict } from '../../kernel/core/policy.js';
import type { Tool } from '../../kernel/core/tool.js';
import { isRecord } from '../../kernel/core/json.js';
import { didYouMean } from '../../kernel/core/text.js';
import { readBounded } from '../../kernel/disk/bounded-file.js';
import { defineTool, type DefinedTool, failed } from '../../kernel/tools/define-tool.js';
import {
  type FileOrigin,
  filesIn,
  type FoundFile,
  type LeftOutFile,
  nameIn,
  type SearchedFolder,
  withVariables,
} from '../../kernel/config/found-files.js';
import { type FileHead, type KeptHeads, openKeptHeads } from '../../kernel/config/kept-heads.js';
import { statsAt } from '../../kernel/disk/path-stats.js';
import { type FrontMatter, markdownText, oneLine, readFrontMatter } from '../../kernel/config/front-matter.js';
import { isChosen } from '../../kernel/tools/chosen-tools.js';
import { readWorkFields } from '../../kernel/console/work-fields.js';
import { countingPlaces, type ProjectPart, type TrustedHere } from '../../kernel/config/project.js';

/** Another agent that a model may ask for: who it is and what it may use. */
export interface AgentRole {
  readonly name: string;
  /** One line: what it is for. */
  readonly description: string;
  /** Names and patterns of tools, as written; null: those of the session. */
  readonly tools: readonly string[] | null;
  /** Names and patterns of tools that the agent never gets. */
  readonly withoutTools: readonly string[];
  /** Null: that of the session. */
  readonly model: string | null;
  /** The effort of its requests; null for that of its model or of the session. */
  readonly effort: EffortLevel | null;
  /** Its file says that it uses the model of the session. */
  readonly inheritsModel?: true;
  /** Null: the limit of every agent. */
  readonly maxTurns: number | null;
  /** Skills that it knows from the beginning. */
  readonly skills: readonly string[];
  /** The stricter mode that the agent runs in; null for that of the session. */
  readonly mode: StricterMode | null;
  /** Whose notes it reads and writes between its runs; null for none. */
  readonly memory: MemoryScope | null;
  /** Its calls return at once, unless a call says otherwise. */
  readonly background: boolean;
  /** It works in a git worktree of its own; null: in the directory of the session. */
  readonly isolation: 'worktree' | null;
  /** Reads its prompt; '' for a file that is gone. */
  readonly prompt: () => string;
  readonly origin: FileOrigin;
  /** Null: it comes with the program. */
  readonly path: string | null;
}

export type MemoryScope = 'user' | 'project' | 'local';

/** `plan`: what does more than read is denied. `dontAsk`: what would be asked about is denied. */
export type StricterMode = 'plan' | 'dontAsk' | Exclude<ApprovalMode, 'never'>;

export interface FoundAgents {
  /** The first of each name. */
  readonly agents: readonly AgentRole[];
  /** The agents that another one of the same name hides. */
  readonly shadowed: readonly AgentRole[];
  /** The files that are no agents. */
  readonly leftOut: readonly LeftOutFile[];
  /** Sentences about the files that are no agents. */
  readonly problems: readonly string[];
  /** The fields of the others: see `problemsOf`. */
  readonly read: readonly AgentFields[];
}

/** The fields of an agent, and the file or option that they are from. */
export interface AgentFields extends Pick<FrontMatter, 'fields'> {
  readonly path: string;
}

/** The mistakes that are found while agents are read. */
interface Mistakes {
  readonly problems: string[];
  readonly leftOut: LeftOutFile[];
  readonly read: AgentFields[];
}

const maxBytes = 256 * 1024;
const maxDescription = 250;

/** The agents that come with the program. A file of the same name replaces one. */
const builtIn: readonly AgentRole[] = [
  {
    name: 'general',
    description: 'Does a whole task with the tools of this session.',
    tools: null,
    prompt: () => 'You are an agent that does one task for another agent, which waits for it.',
  },
  {
    name: 'explore',
    description: 'Finds files, code and facts in this project; it only reads.',
    tools: ['glob', 'grep', 'file_read'],
    prompt: () =>
      'You are an agent that finds things in a project for another agent, which waits for it. Search widely first, ' +
      'then read what matters. Report what you found with paths and line numbers, and what you did not find.',
  },
].map((role) => ({
  withoutTools: [],
  model: null,
  effort: null,
  maxTurns: null,
  skills: [],
  mode: null,
  memory: null,
  background: false,
  isolation: null,
  origin: 'program',
  path: null,
  ...role,
}));

/** Finds the agents of these places, those that come with the program, and those of the command line (`given`), which win. A file without a name or a description is
 * left out, with a sentence about it. */
export function agentsIn(
  places: readonly SearchedFolder[],
  heads: KeptHeads = openKeptHeads(null),
  given: Readonly<Record<string, unknown>> = {},
): FoundAgents {
  const agents = new Map<string, AgentRole>();
  const shadowed: AgentRole[] = [];
  const mistakes: Mistakes = { problems: [], leftOut: [], read: [] };
  const found = agentFiles(places).flatMap((file) => readRole(file, mistakes, heads) ?? []);
  heads.save();
  for (const role of [...givenRoles(given, mistakes), ...found, ...builtIn]) {
    if (!agents.has(role.name)) agents.set(role.name, role);
    else if (role.path !== null) shadowed.push(role);
  }
  return { agents: [...agents.values()], shadowed, ...mistakes };
}

/** Folders of agents often have a page about them. */
function agentFiles(places: readonly SearchedFolder[]): readonly FoundFile[] {
  const isAgent = (path: string): boolean => path.endsWith('.md') && !/\/(?:readme|claude|agents)\.md$/i.test(path);
  return places.flatMap((place) => filesIn(place, ({ path, isFolder }) => (!isFolder && isAgent(path) ? path : null)));
}

/** Returns true if at least one file of an agent exists. */
export function hasAgents(places: readonly SearchedFolder[]): boolean {
  return agentFiles(places).length > 0;
}

interface ReadFile extends FrontMatter {
  /** Of the file, hex. */
  readonly sha256: string;
  readonly bytes: number;
}

function readFile({ path }: FoundFile): ReadFile | null {
  const found = readBounded(path, { maxBytes, longer: 'refuse', links: 'follow' });
  if (found.kind !== 'read') return null;
  const sha256 = createHash('sha256').update(found.bytes).digest('hex');
  return { ...readFrontMatter(markdownText(found.bytes)), sha256, bytes: found.bytes.length };
}

/** A name may have spaces, as those of GitHub Copilot do. A file without one is named as the file is. */
const agentName = /^[\p{L}\p{N}][\p{L}\p{M}\p{N} _.:&/()+'-]{0,63}$/u;

/** Returns true if a sub-agent can be called so. */
export function isAgentName(name: string): boolean {
  return agentName.test(name.normalize('NFC'));
}

function headOf(file: FoundFile): FileHead {
  const read = readFile(file);
  if (read === null) return { fields: new Map(), opening: '', problem: 'cannot be read' };
  return { fields: read.fields, opening: oneLine(read.body, 80), problem: null };
}

function readRole(file: FoundFile, { problems, leftOut, read }: Mistakes, heads: KeptHeads): AgentRole | null {
  const { path, place } = file;
  const stats = statsAt(path);
  const head = stats && heads.of(path, stats, () => headOf(file));
  const fileName = basename(path).replace(/(?:\.agent|\.chatmode)?\.md$/, '');
  const leaveOut = (reason: string): null => {
    problems.push(`${path} ${reason}; the agent is not loaded.`);
    leftOut.push({ name: nameIn(place, fileName), path, origin: place.origin, reason });
    return null;
  };
  if (head === null || head.problem !== null) return leaveOut(head?.problem ?? 'cannot be read');
  const { fields, opening } = head;
  const field = (key: string): string => fields.get(key)?.trim() ?? '';
  const name = (field('name') || fileName).normalize('NFC');
  const description = oneLine(field('description'), maxDescription);
  if (!isAgentName(name)) return leaveOut('has no name in letters, digits, spaces and -');
  if (description === '') return leaveOut('has no description');
  if (opening === '') return leaveOut('has no prompt');
  read.push({ path, fields });
  return {
    name: nameIn(place, name),
    description,
    ...limitsOf(fields),
    prompt: () => withVariables(place, readFile(file)?.body.trim() ?? ''),
    origin: place.origin,
    path,
  };
}

type RoleLimits = Omit<AgentRole, 'name' | 'description' | 'prompt' | 'origin' | 'path'>;

/** Returns the tools, the model and the limits that the fields of an agent name. */
function limitsOf(fields: FrontMatter['fields']): RoleLimits {
  const field = (...keys: readonly string[]): string => keys.map((key) => fields.get(key)?.trim()).find(Boolean) ?? '';
  const { tools, withoutTools, model, inheritsModel, effort } = readWorkFields(fields);
  return {
    ...{ tools, withoutTools, model, effort },
    ...(inheritsModel ? { inheritsModel } : {}),
    maxTurns: turnsOf(field('maxTurns', 'max-turns', 'max_turns')),
    skills: listOf(field('skills')),
    mode: modeOf(field('permissionMode', 'permission-mode')),
    memory: memoryScope(field('memory')),
    background: field('background') === 'true',
    isolation: field('isolation') === 'worktree' ? 'worktree' : null,
  };
}

/** Reads the agents of `--agents`: objects with the fields of a file, and its text as `prompt`. */
function givenRoles(
  agents: Readonly<Record<string, unknown>>,
  { problems, leftOut, read }: Mistakes,
): readonly AgentRole[] {
  return Object.entries(agents).flatMap(([name, agent]): readonly AgentRole[] => {
    const { prompt, ...others } = isRecord(agent) ? agent : {};
    const fields = new Map(Object.entries(others).map(([key, value]) => [key, fieldText(value)]));
    const path = `--agents ${name}`;
    if (!isAgentName(name)) {
      const reason = 'has no name in letters, digits, spaces and -';
      problems.push(`${path} ${reason}; the agent is not loaded.`);
      leftOut.push({ name, path, origin: 'option', reason });
      return [];
    }
    read.push({ path, fields });
    const description = oneLine(fields.get('description') ?? '', maxDescription);
    const text = typeof prompt === 'string' ? prompt.trim() : '';
    return [{ name, description, ...limitsOf(fields), prompt: () => text, origin: 'option', path: null }];
  });
}

function fieldText(value: unknown): string {
  if (Array.isArray(value)) return value.map(String).join(', ');
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function listOf(text: string): readonly string[] {
  return text.split(/[\s,]+/).filter((item) => item !== '');
}

function turnsOf(text: string): number | null {
  const turns = Number(text);
  return Number.isInteger(turns) && turns > 0 ? turns : null;
}

const modes: readonly string[] = ['plan', 'dontAsk', 'always', 'mutating', 'dangerous'] satisfies StricterMode[];

export function modeOf(mode: string): StricterMode | null {
  return modes.includes(mode) ? (mode as StricterMode) : null;
}

function memoryScope(text: string): MemoryScope | null {
  return text === 'user' || text === 'project' || text === 'local' ? text : null;
}

/** Lists the files of agents of a project. One that cannot be read is no agent, so it needs no trust. */
export function partsOfAgents(places: readonly SearchedFolder[]): readonly ProjectPart[] {
  return agentFiles(places).flatMap((file): readonly ProjectPart[] => {
    const role = readRole(file, { problems: [], leftOut: [], read: [] }, openKeptHeads(null));
    const read = readFile(file);
    if (read === null) return [];
    const tools = role?.tools?.join(', ') ?? 'those of the session';
    const model = role?.model ?? 'that of the session';
    const { sha256, bytes } = read;
    const lines = role ? [`agent ${role.name}: ${role.description}`, `tools: ${tools}; model: ${model}`] : ['no agent'];
    return [{ kind: 'agents', path: file.path, sha256, bytes, lines }];
  });
}

/** No agent starts another one, puts questions of its own to the user, or leaves anything running. */
const neverTheirs: readonly string[] = ['agent', 'ask_user', 'propose_plan', 'jobs'];

/** The names that another program has for a tool of ours. */
type TheirNames = (tool: string) => readonly string[];

/** The tools that an agent has of those of its session. */
export function toolsOf(role: AgentRole, offered: readonly Tool[], theirs: TheirNames): readonly Tool[] {
  return offered.filter((tool) => !neverTheirs.includes(tool.name) && isChosen(role, tool, theirs));
}

/** Puts an agent's own strictness over a policy: nothing is allowed that the session would not allow. */
export function stricter(policy: Policy, mode: StricterMode | null, agent: string): Policy {
  if (mode === null || mode === 'dangerous' || mode === 'dontAsk') return policy;
  if (mode === 'plan') return onlyReading(policy, `the agent ${agent} only reads`);
  return {
    ...policy,
    assess: async (...call) => heldBy(mode, agent, await policy.assess(...call)),
  };
}

function heldBy(mode: 'always' | 'mutating', agent: string, verdict: Verdict): Verdict {
  const { risk, decision } = verdict;
  if (decision !== 'allow' || (mode === 'mutating' && risk === 'read-only')) return verdict;
  return { ...verdict, decision: 'ask', reasons: [`calls of the agent ${agent} need approval`, ...verdict.reasons] };
}

const maxLine = 250;
const maxBlock = 6000;
/** The agent ends by itself before this; its session is closed in the rest. */
const closingMs = 90_000;

/** `agent`: has another agent do a task. Each call of the agent is judged as one of this session would be, so the call
 * itself does nothing that need be asked about. */
export function agentTool(
  find: () => Promise<FoundAgents>,
  { agents }: FoundAgents,
  limits: { readonly timeoutMs: number },
): DefinedTool {
  return defineTool({
    name: 'agent',
    otherNames: ['Agent', 'Task'],
    effect: 'read',
    description: `${about} Agents:\n${linesOf(agents).join('\n')}`,
    limits: { timeout_ms: limits.timeoutMs + closingMs },
    schema: {
      type: 'object',
      properties: {
        agent: { type: 'string' },
        prompt: { type: 'string', description: 'the whole task, and what to report' },
        description: { type: 'string', description: 'three to six words' },
        resume: { type: 'string', description: 'agent_session_id to continue' },
        background: { type: 'boolean' },
        isolation: { enum: ['worktree'] },
        merge: { type: 'integer' },
      },
      additionalProperties: false,
    },
    describe: ({ agent = '', description = '', merge }) =>
      merge === undefined ? `agent(${oneLine(agent, 64)}: ${oneLine(description, 100)})` : `agent(merge ${merge})`,
    check: (given) => {
      if (given.merge !== undefined) return null;
      const missing = (['agent', 'prompt', 'description'] as const).find((key) => given[key] === undefined);
      return missing === undefined ? null : { argument: missing, problem: 'missing', expected: 'string' };
    },
    judge: () => ({ risk: 'read-only', reasons: [] }),
    async run({ merge, agent = '', prompt = '', description = '', ...more }, { session, signal }) {
      if (merge !== undefined)
        return session.mergeAgent
          ? await session.mergeAgent(merge, signal)
          : failed('execution_failed', 'An agent cannot merge: say in your answer what is to be merged.');
      const order = { agent, prompt, description, ...more };
      if (order.prompt.trim() === '') return failed('invalid_args', 'prompt is empty: say what the agent is to do.');
      const names = (await find()).agents.map(({ name }) => name);
      if (!names.includes(order.agent))
        return failed(
          'not_found',
          `There is no agent ${oneLine(order.agent, 64)}. ${didYouMean(order.agent, names)} ` +
            `Known: ${names.join(', ')}.`,
        );
      if (!session.runAgent) return failed('execution_failed', 'An agent cannot start agents: do the task yourself.');
      return await session.runAgent(order, signal);
    },
  });
}

const about =
  'Gives another agent a task; returns its last message. It sees nothing of this conversation. Not for a call or ' +
  'two. Calls in one response run in parallel if read-only or in a worktree.';

/** The first ones with their descriptions, as far as those have room. */
function linesOf(agents: readonly AgentRole[]): readonly string[] {
  let length = 0;
  return agents.map(({ name, description }) => {
    const line = oneLine(`- ${name}: ${description}`, maxLine);
    length += line.length;
    return length > maxBlock ? `- ${name}` : line;
  });
}

/** Finds the agents of the user, of a trusted project and of the program, as they are now. */
export async function findAgents(here: TrustedHere): Promise<FoundAgents> {
  return agentsIn(await countingPlaces(here, 'agents'), openKeptHeads(here.config.files.cache), here.givenAgents);
}

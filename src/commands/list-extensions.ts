import type { Settings } from '../kernel/console/run-settings.js';
import { didYouMean } from '../kernel/core/text.js';
import type { AgentRole, FoundAgents } from '../features/subagents/roles.js';
import { namedFiles } from '../features/hooks/listed-hooks.js';
import type { FoundSkills, Skill } from '../features/prompts-and-skills/read-skills.js';
import { sanitize } from '../kernel/core/sanitize.js';
import { CliError, type CommandLine, exit, type Verb } from '../kernel/console/command.js';
import type { ListedHooks } from '../features/hooks/open-hooks.js';
import { columns, printJson, printListing } from '../kernel/console/line-output.js';
import { openCommands } from '../features/prompts-and-skills/open-commands.js';
import { findAgents } from '../features/subagents/agent-files.js';
import { asideNotices, type TrustedHere } from '../kernel/config/project.js';

interface Options {
  readonly json?: boolean;
}

/** Files that the user wrote for this program or another agent, as a listing shows them. */
interface Listing {
  /** One JSON object each. */
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  readonly lines: readonly string[];
  /** What in the files does not count, as sentences. */
  readonly problems: readonly string[];
}

type List = (line: CommandLine) => Promise<Listing>;

function listVerb(example: string, list: List): Verb {
  return {
    line: {
      example,
      options: (command) => command.option('--json', 'one JSON array'),
      run: async (line, _args, { json }: Options) => {
        const { rows, lines, problems } = await list(line);
        for (const problem of problems) line.out.error(`agent: ${problem}\n`);
        printListing(line.out, json, rows, () => lines);
        return exit.done;
      },
    },
  };
}

/** Reads the files and says what is wrong with them. Ends with 2 where something is. */
function checkVerb(example: string, what: string, list: List): Verb {
  return {
    line: {
      example,
      options: (command) => command.option('--json', 'one JSON array of the problems'),
      run: async (line, _args, { json }: Options) => {
        const { rows, problems } = await list(line);
        const good = `${what}: ${rows.length} found, no problem`;
        printListing(
          line.out,
          json,
          problems.map((message) => ({ message })),
          () => (problems.length === 0 ? [good] : problems.map((problem) => sanitize(problem))),
        );
        return problems.length === 0 ? exit.done : exit.usage;
      },
    },
  };
}

function showVerb(
  example: string,
  show: (line: CommandLine, name: string) => Promise<{ readonly row: unknown; readonly lines: readonly string[] }>,
): Verb {
  return {
    line: {
      example,
      options: (command) => command.option('--json', 'as JSON'),
      run: async (line, [name = ''], { json }: Options) => {
        const { row, lines } = await show(line, name);
        if (json) printJson(line.out, row, 2);
        else line.out.print(`${sanitize(lines.join('\n'))}\n`);
        return exit.done;
      },
    },
  };
}

function unknown(kind: string, name: string, names: readonly string[]): CliError {
  const known = names.length === 0 ? `There are no ${kind}s.` : `Known: ${[...new Set(names)].join(', ')}`;
  return new CliError(exit.usage, `there is no ${kind} \`${name}\``, `${didYouMean(name, names)} ${known}`.trim());
}

/** Notices about files that are not used. */
interface Aside {
  readonly aside: readonly { readonly message: string }[];
}

// Skills.

function skillListing({ skills, shadowed, problems, aside }: FoundSkills & Aside): Listing {
  return {
    rows: [...skills.map((skill) => skillRow(skill, false)), ...shadowed.map((skill) => skillRow(skill, true))],
    lines: [
      ...skills.flatMap((skill) => skillLines(skill)),
      ...shadowed.map(({ name, path }) => `${name}: hidden by the one above, ${path}`),
    ],
    problems: [...problems, ...aside.map(({ message }) => message)],
  };
}

function skillRow(skill: Skill, hidden: boolean): Readonly<Record<string, unknown>> {
  const { name, description, path, origin, allowedTools, argumentHint, forModel, forUser } = skill;
  const who = { for_model: forModel, for_user: forUser };
  return { name, description, path, origin, allowed_tools: allowedTools, argument_hint: argumentHint, ...who, hidden };
}

function skillLines({ name, description, path, origin, allowedTools, forModel, forUser }: Skill): readonly string[] {
  const who = forModel ? (forUser ? '' : ', for the model alone') : ', by hand alone';
  return [
    `${name} (${origin}${who}): ${description}`,
    `  ${path}`,
    ...(allowedTools === null ? [] : [`  asks for ${allowedTools}; that grants nothing`]),
  ];
}

async function findSkills(settings: Settings): Promise<FoundSkills & Aside> {
  return { ...(await openCommands(settings).skills()), aside: await asideNotices(settings) };
}

const noSkills =
  'There are no skills. A skill is a folder with a SKILL.md in ~/.agents/skills, ~/.claude/skills, or .agents/skills of a project.';

const skillsOf: List = async ({ settings }) => {
  const listed = skillListing(await findSkills(await settings()));
  return listed.rows.length > 0 ? listed : { ...listed, lines: [noSkills] };
};

export const listSkills: Verb = listVerb('agent skills list --json', skillsOf);

export const skills: Verb = {
  ...listSkills,
  slash: async (_argument, { screen, settings }) => {
    const { lines, problems } = skillListing(await findSkills(settings));
    if (lines.length + problems.length === 0) screen.notice('info', noSkills);
    else screen.print(sanitize([...lines, ...problems].join('\n')));
  },
};

export const showSkill: Verb = showVerb('agent skills show review', async ({ settings }, name) => {
  const { skills } = await findSkills(await settings());
  const skill = skills.find((one) => one.name === name);
  if (!skill)
    throw unknown(
      'skill',
      name,
      skills.map((one) => one.name),
    );
  const { readSkillText } = await import('../features/prompts-and-skills/read-skills.js');
  const text = readSkillText(skill)?.body ?? null;
  return { row: { ...skillRow(skill, false), text }, lines: [...skillLines(skill), '', text ?? '(it cannot be read)'] };
});

export const checkSkills: Verb = checkVerb('agent skills check', 'skills', skillsOf);

// Agents.

function agentListing({ agents, shadowed, problems, aside }: FoundAgents & Aside): Listing {
  return {
    rows: [...agents.map((role) => agentRow(role, false)), ...shadowed.map((role) => agentRow(role, true))],
    lines: [
      ...agents.flatMap((role) => agentLines(role)),
      ...shadowed.map(({ name, path }) => `${name}: hidden by the one above, ${path ?? ''}`),
    ],
    problems: [...problems, ...aside.map(({ message }) => message)],
  };
}

function agentRow(role: AgentRole, hidden: boolean): Readonly<Record<string, unknown>> {
  const { name, description, path, origin, tools, withoutTools, model, maxTurns, skills, mode } = role;
  const limits = { model, max_turns: maxTurns, skills, permission_mode: mode };
  return { name, description, path, origin, tools, without_tools: withoutTools, ...limits, hidden };
}

function agentLines(role: AgentRole): readonly string[] {
  const { name, description, origin, path, tools, withoutTools, model, mode } = role;
  const without = withoutTools.length === 0 ? '' : `, without ${withoutTools.join(', ')}`;
  const strict = mode === null ? '' : `; permission mode: ${mode}`;
  return [
    `${name} (${origin}): ${description}`,
    ...(path === null ? [] : [`  ${path}`]),
    `  tools: ${tools?.join(', ') ?? 'those of the session'}${without};` +
      ` model: ${model ?? 'that of the session'}${strict}`,
  ];
}

async function findRoles(settings: TrustedHere): Promise<FoundAgents & Aside> {
  return { ...(await findAgents(settings)), aside: await asideNotices(settings) };
}

const agentsOf: List = async ({ settings }) => agentListing(await findRoles(await settings()));

export const listAgents: Verb = listVerb('agent agents list --json', agentsOf);

export const agents: Verb = {
  ...listAgents,
  slash: async (_argument, { screen, settings, tools }) => {
    const { lines, problems } = agentListing(await findRoles(settings));
    const isOffered = tools.registry.get('agent') !== undefined;
    const notice = isOffered ? [] : ['They are not offered in this session; /tools +agents offers them.'];
    screen.print(sanitize([...lines, ...problems, ...notice].join('\n')));
  },
};

export const showAgent: Verb = showVerb('agent agents show explore', async ({ settings }, name) => {
  const { agents } = await findRoles(await settings());
  const role = agents.find((one) => one.name === name);
  if (!role)
    throw unknown(
      'agent',
      name,
      agents.map((one) => one.name),
    );
  return { row: { ...agentRow(role, false), prompt: role.prompt }, lines: [...agentLines(role), '', role.prompt] };
});

export const checkAgents: Verb = checkVerb('agent agents check', 'agents', agentsOf);

// Hooks.

async function findHooks(settings: TrustedHere): Promise<ListedHooks> {
  return (await import('../features/hooks/open-hooks.js')).listHooks(settings);
}

type ListedHook = ListedHooks['hooks'][number];

function hookListing({ hooks, problems }: ListedHooks): Listing {
  return { rows: hooks.map(hookRow), lines: hookLines(hooks), problems };
}

function hookRow(hook: ListedHook): Readonly<Record<string, unknown>> {
  const { event, matcher, command, args, timeoutMs, required, condition, background, from, counts } = hook;
  const { sha256, missing } = namedFiles(hook);
  const shown = { event, matcher, command, args: args ?? null, timeout_s: timeoutMs / 1000, required, sha256, missing };
  const more = { if: condition ?? null, background: background ?? null };
  return { ...shown, ...more, origin: from.origin, path: from.path, counts };
}

function inBackground({ background }: ListedHook): string {
  return background === undefined ? '' : ' (in the background)';
}

function hookLines(hooks: ListedHooks['hooks']): readonly string[] {
  if (hooks.length === 0)
    return ['No hooks. They are read from hooks.json beside your configuration (`agent config path`).'];
  return columns(
    hooks.map((hook) => {
      const { sha256, missing } = namedFiles(hook);
      const gone = missing.length === 0 ? '' : ` (missing: ${missing.join(', ')})`;
      const aside = hook.counts ? '' : ' (not trusted, not run: agent config trust asks about it)';
      const command = [hook.command, ...(hook.args ?? [])].join(' ');
      const names = hook.matcher === '' ? '*' : hook.matcher;
      const matcher = `${names}${hook.condition === undefined ? '' : ` if ${hook.condition}`}`;
      const shown = `${command}${inBackground(hook)}${gone}${aside}`;
      return [hook.event, matcher, hook.from.origin, sha256.slice(0, 12), shown];
    }),
  );
}

const hooksOf: List = async ({ settings }) => hookListing(await findHooks(await settings()));

export const listHooks: Verb = listVerb('agent hooks list --json', hooksOf);

export const hooks: Verb = {
  ...listHooks,
  slash: async (_argument, { screen, settings }) => {
    const { lines, problems } = hookListing(await findHooks(settings));
    for (const problem of problems) screen.notice('warn', problem);
    screen.print(lines.join('\n'));
  },
};

/** Shows the hooks of an event. */
export const showHooks: Verb = showVerb('agent hooks show PreToolUse', async ({ settings }, name) => {
  const { hooks } = await findHooks(await settings());
  const ofEvent = hooks.filter(({ event }) => event === name);
  if (ofEvent.length === 0)
    throw unknown(
      'hook',
      name,
      hooks.map(({ event }) => event),
    );
  const rows = ofEvent.map(hookRow);
  const lines = rows.map((row) =>
    Object.entries(row)
      .map(([key, value]) => `${key}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
      .join('\n'),
  );
  return { row: rows, lines: [lines.join('\n\n')] };
});

/** Missing files of a hook are problems, too: the hook fails each time it is called. */
export const checkHooks: Verb = checkVerb('agent hooks check', 'hooks', async ({ settings }) => {
  const listed = await findHooks(await settings());
  const missing = listed.hooks.flatMap((hook) =>
    namedFiles(hook).missing.map((file) => `${hook.from.path}: ${hook.event}: ${file} does not exist`),
  );
  return hookListing({ ...listed, problems: [...listed.problems, ...missing] });
});

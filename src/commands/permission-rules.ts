import { claudeRules } from '../app/claude-permissions.js';
import { parseJson } from '../kernel/core/json.js';
import { spelledLine } from '../kernel/core/text.js';
import { type Rule, ruleKey, type RuleList } from '../kernel/core/policy.js';
import { readRule, refusedAllow } from '../kernel/permissions/rules.js';
import type { Repl, CommandHandler } from '../kernel/console/command.js';

/** `/permissions`: the rules of the settings and of this session, and how to add, edit and remove them. */
export const permissions: CommandHandler = { slash: tendRules };

const lists: Readonly<Record<RuleList, string>> = {
  allow: 'not asked about',
  ask: 'always asked about',
  deny: 'never runs',
};

/** A rule with its list; `session`: it ends with the session. */
interface Listed {
  readonly list: RuleList | 'session';
  readonly rule: Rule;
}

async function tendRules(argument: string, repl: Repl): Promise<void> {
  const [, verb = '', rest = ''] = /^(\S*)\s*([\s\S]*)$/.exec(argument.trim()) ?? [];
  if (verb === '') await choose(repl);
  else if (verb === 'add') await add(rest, repl);
  else if (verb === 'rm') await withListed(rest, repl, (listed) => remove(listed, repl));
  else if (verb === 'edit') await withListed(rest, repl, (listed, text) => edit(listed, text, repl));
  else repl.screen.notice('warn', `There is no /permissions ${verb}. ${usage}`);
}

const usage =
  'Write /permissions add allow git commit, /permissions add deny {"tool":"file_write","path":"~/notes/**"}, ' +
  '/permissions edit 1 {…} or /permissions rm 1.';

function allListed({ approval, sessions }: Repl): readonly Listed[] {
  const { sessionRules } = sessions.current().session;
  const rules = approval.rules();
  return [
    ...[...sessionRules.values()].map((rule): Listed => ({ list: 'session', rule })),
    ...(Object.keys(lists) as RuleList[]).flatMap((list) => rules[list].map((rule): Listed => ({ list, rule }))),
  ];
}

async function choose(repl: Repl): Promise<void> {
  const { screen, settings } = repl;
  const listed = allListed(repl);
  const written = new Map(
    (await claudeRules(settings)).rules.flatMap(({ read, path }) =>
      read.rules.map((rule) => [ruleKey(rule), spelledLine(path)] as const),
    ),
  );
  if (listed.length === 0) {
    screen.notice('info', `There are no rules. ${usage}`);
    return;
  }
  const chosen = await screen.pick({
    title: 'Rules: deny beats ask beats allow',
    items: listed.map((entry, index) => ({
      label: `${index + 1} ${entry.list === 'session' ? 'allow' : entry.list} ${JSON.stringify(entry.rule)}`,
      detail: [meaningOf(entry), written.get(ruleKey(entry.rule))].filter(Boolean).join(', from '),
      value: index,
    })),
  });
  const entry = chosen === null ? undefined : listed[chosen];
  if (chosen === null || entry === undefined) return;
  const what = await screen.pick({
    title: JSON.stringify(entry.rule),
    items: [
      { label: 'Remove', value: 'remove' as const },
      ...(entry.list === 'session' ? [] : [{ label: 'Edit', value: 'edit' as const }]),
    ],
  });
  if (what === 'remove') await remove(entry, repl);
  if (what === 'edit') screen.setDraft(`/permissions edit ${chosen + 1} ${JSON.stringify(entry.rule)}`);
}

function meaningOf({ list, rule }: Listed): string {
  const refused = list === 'allow' ? refusedAllow(rule) : null;
  if (refused !== null) return `allows nothing: ${refused}`;
  return list === 'session' ? 'in this session' : lists[list];
}

async function withListed(
  argument: string,
  repl: Repl,
  act: (listed: Listed, text: string) => Promise<void>,
): Promise<void> {
  const [, number = '', text = ''] = /^(\d+)(?:\s+([\s\S]*))?$/.exec(argument.trim()) ?? [];
  const listed = allListed(repl)[Number(number) - 1];
  if (listed) await act(listed, text);
  else repl.screen.notice('warn', `There is no such rule; /permissions lists them with their numbers.`);
}

async function add(argument: string, repl: Repl): Promise<void> {
  const [, list = '', text = ''] = /^(allow|ask|deny)\s+([\s\S]*)$/.exec(argument) ?? [];
  const rule = text === '' ? null : ruleOf(text, repl);
  if (!isList(list) || rule === null) repl.screen.notice('warn', `That is not a rule. ${usage}`);
  else await write(list, rule, (own) => [...own, rule], repl);
}

async function edit({ list, rule }: Listed, text: string, repl: Repl): Promise<void> {
  const next = ruleOf(text, repl);
  if (next === null || list === 'session') repl.screen.notice('warn', `That is not a rule. ${usage}`);
  else await write(list, next, (own) => own.map((one) => (ruleKey(one) === ruleKey(rule) ? next : one)), repl, rule);
}

async function remove({ list, rule }: Listed, repl: Repl): Promise<void> {
  if (list !== 'session') {
    await write(list, null, (own) => own.filter((one) => ruleKey(one) !== ruleKey(rule)), repl, rule);
    return;
  }
  repl.sessions.current().session.sessionRules.delete(ruleKey(rule));
  repl.screen.notice('info', 'Such calls are asked about again.');
}

/** Changes a list unless the rule would allow what no rule may. `before`: a rule that must be the user's own. */
async function write(
  list: RuleList,
  rule: Rule | null,
  change: (own: readonly Rule[]) => readonly Rule[],
  { approval, screen }: Repl,
  before?: Rule,
): Promise<void> {
  const refused = list === 'allow' && rule ? refusedAllow(rule) : null;
  if (refused !== null) {
    screen.notice('warn', `No such rule: ${refused}.`);
    return;
  }
  let isOwn = before === undefined;
  const { done, said } = await approval.changeRules(list, (own) => {
    isOwn ||= own.some((one) => before !== undefined && ruleKey(one) === ruleKey(before));
    return change(own);
  });
  if (isOwn) screen.notice(done ? 'info' : 'warn', said);
  else screen.notice('warn', 'It is not in your own configuration (`agent config show` says where it is from).');
}

function isList(text: string): text is RuleList {
  return Object.hasOwn(lists, text);
}

/** A rule as JSON, the name of a tool, or the leading words of a command, also as `bash(git log *)`. */
function ruleOf(given: string, { tools }: Repl): Rule | null {
  const [, text = given] = /^bash\(([^*]*[^*\s:])(?:\s+|:)\*\)$/i.exec(given.trim()) ?? [];
  // Another pattern would be read as words of a command.
  if (/^\w+\(/.test(text)) return null;
  if (text.startsWith('{')) {
    try {
      return readRule(parseJson(text));
    } catch {
      return null;
    }
  }
  const argv = text.split(/\s+/).filter((word) => word !== '');
  const [first = ''] = argv;
  if (argv.length === 0) return null;
  return argv.length === 1 && tools.registry.get(first) ? { tool: first } : { tool: 'bash', argv };
}

import { claudeRules, ruleProblem, trustedOrigins } from '../app/claude-permissions.js';
import { checkVerb, type Listing, listVerb, notTrusted } from '../kernel/console/listed-files.js';
import type { CommandHandler } from '../kernel/console/command.js';
import { columns } from '../kernel/console/line-output.js';
import type { Settings } from '../kernel/console/run-settings.js';
import type { Leaf } from '../kernel/config/layers.js';
import { readRule, refusedAllow } from '../kernel/permissions/rules.js';

/** A permission rule as it is listed. Source: contracts, "Compatibility". */
interface ListedRule {
  /** As written: a rule of Claude Code, or one of ours as JSON. */
  readonly rule: string;
  readonly action: 'allow' | 'ask' | 'deny';
  readonly origin: string;
  readonly path: string | null;
  readonly honoured: boolean;
  readonly reason: string | null;
}

async function listing(settings: Settings): Promise<Listing> {
  const { rules, problems, broken } = await claudeRules(settings);
  const trusted = await trustedOrigins(settings, rules);
  const rows: readonly ListedRule[] = [
    ...ownRules(settings),
    ...rules.map((rule) => {
      const { text, list: action, origin, path, read } = rule;
      const problem = ruleProblem(rule, trusted);
      return { rule: text, action, origin, path, honoured: problem === null, reason: problem ?? read.problem ?? null };
    }),
  ];
  return { rows, lines: rows.length === 0 ? [noRules] : columns(rows.map(rowOf)), problems: [...broken, ...problems] };
}

const noRules =
  'There are no permission rules. They are read from `rules` in your configuration and from .claude/settings.json.';

function rowOf({ action, rule, origin, honoured, reason }: ListedRule): readonly string[] {
  return [action, rule, origin, honoured ? (reason ?? '') : `no effect: ${reason ?? ''}`];
}

/** Lists the rules of the configuration files, also those of a project that is not trusted. */
function ownRules({ loaded }: Settings): readonly ListedRule[] {
  const { leaves, project } = loaded;
  const aside = project?.trusted === false ? project.wanted : [];
  return [...leaves.flatMap((leaf) => rulesOf(leaf, null)), ...aside.flatMap((leaf) => rulesOf(leaf, notTrusted))];
}

function rulesOf({ path: [section, action], value, origin }: Leaf, problem: string | null): readonly ListedRule[] {
  const isList = section === 'rules' && (action === 'allow' || action === 'ask' || action === 'deny');
  if (!isList || !Array.isArray(value)) return [];
  return value.map((given: unknown) => {
    const rule = readRule(given);
    const refused = rule === null ? 'it is not a rule' : action === 'allow' ? refusedAllow(rule) : null;
    const reason = problem ?? refused;
    const file = 'file' in origin ? origin.file : null;
    return {
      rule: JSON.stringify(given),
      action,
      origin: origin.kind,
      path: file,
      honoured: reason === null,
      reason,
    };
  });
}

export const listPermissions: CommandHandler = listVerb('agent permissions list --json', async ({ settings }) =>
  listing(await settings()),
);

/** Rules without effect are problems, too. */
export const checkPermissions: CommandHandler = checkVerb(
  'agent permissions check',
  'permission rules',
  async ({ settings }) => {
    const { rows, lines, problems } = await listing(await settings());
    const without = rows.flatMap((row) => {
      const { rule, honoured, reason } = row as ListedRule;
      return honoured ? [] : [`${rule}: ${reason ?? ''}`];
    });
    return { rows, lines, problems: [...problems, ...without] };
  },
);

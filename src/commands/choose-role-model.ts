import type { Repl } from '../kernel/console/command.js';
import { type ModelRole, modelRoles } from '../kernel/core/model-names.js';
import { didYouMean } from '../kernel/core/text.js';

/** Describes when the model of each role answers. */
const roleUses: Readonly<Record<ModelRole, string>> = {
  compaction: 'writes summaries',
  title: 'writes titles of sessions',
  subagent: 'answers for sub-agents whose file names no model',
  plan: 'answers in plan mode',
};

/** A role and the model that the user names for it; null: none any more. */
interface RoleRequest {
  readonly role: string;
  readonly name: string | null;
}

/** Reads `plan=anthropic/opus`, `plan=` and `plan=off`; null for anything else. */
export function parseRoleRequest(argument: string): RoleRequest | null {
  const [, role, name = ''] = /^([a-z]+)=(.*)$/i.exec(argument.trim()) ?? [];
  if (role === undefined) return null;
  return { role, name: ['', 'off', 'none'].includes(name.trim()) ? null : name.trim() };
}

/** Sets the model of a role, or removes it, now and in new sessions unless it is for this run alone. */
export async function changeRoleModel(request: RoleRequest, repl: Repl, isForSession: boolean): Promise<void> {
  const { screen, roles } = repl;
  const role = modelRoles.find((known) => known === request.role);
  if (role === undefined) {
    const near = didYouMean(request.role, modelRoles);
    screen.notice(
      'error',
      `There is no role ${request.role}. ${near} Known: ${modelRoles.join(', ')}.`.replace('  ', ' '),
    );
    return;
  }
  const { name } = request;
  const resolved = name === null ? null : await repl.resolveModel(name, repl.sessions.current().session.ref());
  if (resolved?.ok === false) {
    screen.notice('error', `${resolved.problem.message}: ${resolved.problem.hint}`);
    return;
  }
  roles.set(role, name);
  const saved = isForSession ? 'For this run only.' : await repl.keep(`models.roles.${role}`, name ?? undefined);
  const model = resolved === null ? 'the model of the session' : `${resolved.ref.provider}/${resolved.ref.model}`;
  screen.notice('info', `Now ${model} ${roleUses[role]} (role ${role}). ${saved}`);
}

/** Lists the models of roles; '' where none is set. */
export function describeRoles({ roles }: Pick<Repl, 'roles'>): string {
  return modelRoles
    .flatMap((role) => {
      const name = roles.get(role);
      return name === null ? [] : [`${role}=${name}`];
    })
    .join(', ');
}

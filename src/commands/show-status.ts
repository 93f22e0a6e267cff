import { describeRoles } from './choose-role-model.js';
import { money } from '../kernel/agent/budget.js';
import type { CommandHandler, Repl } from '../kernel/console/command.js';
import { columns, oneLine } from '../kernel/console/line-output.js';
import { serverStatus } from '../kernel/console/server-status.js';
import { sanitize } from '../kernel/core/sanitize.js';
import { versionLine } from '../kernel/console/version.js';
import { contextWindowOf } from '../kernel/providers/models.js';
import { counted } from '../kernel/tools/define-tool.js';
import { totalsOf } from '../ui/view.js';

type Fact = readonly [name: string, text: string];

/** `/status`: the model, the modes, the folder, the session, the servers and the limits on one screen. */
export const showStatus: CommandHandler = {
  slash: async (_argument, repl) => {
    const facts = [...modelFacts(repl), ...placeFacts(repl), ...(await serverFacts(repl)), ...usageFacts(repl)];
    repl.screen.print(columns(facts).join('\n'));
  },
};

/** `/usage`: tokens and cost of this session, the share of the context window, and the cost limit. */
export const showUsage: CommandHandler = {
  slash: (_argument, repl) => {
    repl.screen.print(columns([...usageFacts(repl), ...tokenFacts(repl)]).join('\n'));
    repl.screen.notice('info', '/context shows what fills the context window. /budget 5 sets a cost limit.');
    return Promise.resolve();
  },
};

function modelFacts({ sessions, tools, approval, settings, roles }: Repl): readonly Fact[] {
  const ofRoles = describeRoles({ roles });
  const { provider, model } = sessions.current().session.ref();
  const effort = tools.effort();
  const rules = approval.rules();
  const mode = approval.acceptsEdits() ? 'accept-edits' : approval.mode();
  const count = rules.allow.length + rules.ask.length + rules.deny.length;
  return [
    ['agent', versionLine],
    ['Model', `${provider}/${model}${effort === null ? '' : `, effort ${effort}`}`],
    ...(ofRoles === '' ? [] : [['Models by role', `${ofRoles} (/model)`] as const]),
    ['Approval', approval.planning() ? `plan, read-only; then ${mode}` : mode],
    ['Rules', count === 0 ? 'none' : `${counted(count, 'rule')} (/permissions)`],
    ['Sandbox', settings.config.policy.sandbox],
    ['Tools', `${tools.registry.list().length} offered (/tools)`],
  ];
}

function placeFacts({ sessions, settings }: Repl): readonly Fact[] {
  const { session } = sessions.current();
  const title = sessions.title();
  return [
    ['Folder', settings.cwd],
    ['Session', `${session.id}${title === null ? '' : ` · ${oneLine(title, 60)}`}`],
    ['Events', String(session.recent().at(-1)?.seq ?? 0)],
  ];
}

async function serverFacts({ parts, settings }: Repl): Promise<readonly Fact[]> {
  const servers = (await parts.find(serverStatus)?.()) ?? [];
  const shown = servers.map(({ name, state }) => `${name} ${state}`).join(', ');
  return [['MCP servers', settings.guard.text(shown === '' ? 'none' : `${shown} (/mcp)`)]];
}

function usageFacts({ sessions, settings, spending }: Repl): readonly Fact[] {
  const { session } = sessions.current();
  const { provider, model } = session.ref();
  const window = contextWindowOf(settings, provider, model);
  const { context } = totalsOf(session.recent());
  const share = window === null ? 'window not known' : `${((context / window) * 100).toFixed(0)}% of ${window}`;
  const { sum, spentUsd } = session.totals();
  const limit = spending.limitUsd();
  return [
    ['Context', `${context} tokens, ${share}`],
    ['Cost', sum.cost_usd === null ? 'unknown: no price is known for this model' : money(spentUsd)],
    ['Cost limit', limit === null ? 'none (/budget)' : money(limit)],
    ...limitFacts(provider, settings),
    ['Tool turns', `at most ${settings.config.limits.maxToolTurns} per message`],
  ];
}

/** One fact for each limit that the provider gave with its last answers. */
function limitFacts(provider: string, { rateLimits, guard }: Repl['settings']): readonly Fact[] {
  return (rateLimits?.get(provider) ?? []).map(({ name, left, resetsAt }): Fact => {
    const resets = resetsAt === null ? '' : `, resets ${new Date(resetsAt).toLocaleString()}`;
    return [guard.text(`Limit ${sanitize(name)}`), guard.text(`${sanitize(left)} left${resets}`)];
  });
}

function tokenFacts({ sessions }: Repl): readonly Fact[] {
  const { requests, sum } = sessions.current().session.totals();
  return [
    ['Requests', String(requests)],
    [
      'Input tokens',
      `${sum.input_tokens} new, ${sum.cache_read_tokens} from the cache, ${sum.cache_write_tokens} cached`,
    ],
    ['Output tokens', String(sum.output_tokens)],
  ];
}

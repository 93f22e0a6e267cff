import type { AgentCall, TurnDeps } from '../../kernel/agent/dependencies.js';
import type { Verdict } from '../../kernel/core/policy.js';
import type { BoundCall } from '../../kernel/core/tool.js';
import { agentName, type TrackedAgent } from './agent-log.js';
import type { MergePlan } from './merge-worktree.js';

/** The one that allowed a merge, or why it is not allowed. */
type MergeDecision = { readonly decidedBy: 'user' | 'mode' | 'rule' } | { readonly problem: string };

/** Decides about a merge that the user did not ask for, as about edits of its files: what a rule or the mode allows is
 * merged, and what would be asked about is asked about once, for all files. */
export async function mergeDecision(
  agent: TrackedAgent,
  { changes }: MergePlan,
  parent: TurnDeps,
  call: AgentCall,
): Promise<MergeDecision> {
  const verdicts: Verdict[] = [];
  let bound: BoundCall | null = null;
  for (const { path } of changes) {
    const edit = await parent.tools.registry.bind({
      name: 'file_write',
      arguments: JSON.stringify({ path, content: '' }),
    });
    if (!edit.ok) return { problem: 'this session has no tool that writes files, so only the user merges.' };
    bound ??= edit.bound;
    verdicts.push(await parent.tools.policy.assess(edit.bound, parent.cwd, parent.record));
  }
  const denied = verdicts.find(({ decision }) => decision === 'deny');
  if (denied) return { problem: `denied by policy: ${denied.reasons.join('; ')}.` };
  const asked = verdicts.filter(({ decision }) => decision === 'ask');
  const [first] = asked;
  if (first === undefined || bound === null)
    return { decidedBy: verdicts.some(({ decidedBy }) => decidedBy === 'rule') ? 'rule' : 'mode' };
  return await askForMerge(agent, { first, asked, bound }, parent, call);
}

async function askForMerge(
  agent: TrackedAgent,
  { first, asked, bound }: { readonly first: Verdict; readonly asked: readonly Verdict[]; readonly bound: BoundCall },
  parent: TurnDeps,
  call: AgentCall,
): Promise<MergeDecision> {
  const { rules: _rules, ...verdict } = first;
  const targets = asked.flatMap(({ targets: paths = [] }) => paths);
  const title = `merge of ${agentName(agent)}`;
  const reasons = [`merges the changes of agent ${agent.number}`, ...new Set(asked.flatMap((one) => one.reasons))];
  const answer = await call.whileAsking(() =>
    parent.approval.ask(
      {
        callId: `${call.id} merge`,
        title,
        call: { ...bound, args: { merge: agent.number, files: targets.length } },
        argumentsText: JSON.stringify({ merge: agent.number }),
        cwd: parent.cwd,
        verdict: { ...verdict, reasons, targets },
      },
      call.signal,
    ),
  );
  const isAllowed = answer.answer !== 'deny' && answer.answer !== 'unavailable';
  await parent.record.append({
    kind: 'approval',
    content: `${isAllowed ? 'allowed' : 'denied'}: ${reasons.join('; ')}`,
    data: {
      tool_call_id: call.id,
      decision: isAllowed ? 'allow' : 'deny',
      by: answer.answer === 'unavailable' ? 'headless' : 'user',
      risk: verdict.risk,
      reasons,
      call_sha256: parent.host.sha256(`agent\0${JSON.stringify({ merge: agent.number })}`),
    },
  });
  if (isAllowed) return { decidedBy: 'user' };
  return {
    problem:
      answer.answer === 'unavailable'
        ? `it needs approval, and no user can be asked: ${reasons.join('; ')}.`
        : 'the user does not want it merged now.',
  };
}

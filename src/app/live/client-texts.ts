import { createHash } from 'node:crypto';
import type { Question } from '../../kernel/core/policy.js';
import { loadOnce } from '../../kernel/core/runtime.js';
import type { FollowerApproval } from './messages.js';

/** Loaded with the first client. */
export const clientTexts = loadOnce(async () => {
  const [{ plainQuestion, rulesAbout }, { followerForm, readValues }] = await Promise.all([
    import('../../ui/question-lines.js'),
    import('./follower-form.js'),
  ]);
  const approvalOf = (question: Question): FollowerApproval => {
    const { callId: id, call, verdict } = question;
    const { risk, rules = [] } = verdict;
    const approval = {
      id,
      tool: call.tool.name,
      risk,
      ...plainQuestion(question),
      rules: rules.length > 0 ? rulesAbout(question) : null,
    };
    return { ...approval, shown: createHash('sha256').update(JSON.stringify(approval)).digest('hex') };
  };
  return { approvalOf, followerForm, readValues };
});

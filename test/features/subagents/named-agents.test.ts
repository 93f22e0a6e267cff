import { expect, test } from 'vitest';
import { completedAgents, expandAgents } from '../../../src/features/subagents/named-agents.js';
import { agentsIn } from '../../../src/features/subagents/roles.js';
import { tree } from '../../kernel/tools/workbench.js';

const { agents } = agentsIn([], undefined, {
  reviewer: { description: 'Reviews code.', prompt: 'You review.' },
  'Code Writer': { description: 'Writes code.', prompt: 'You write.' },
});

const tasks = (message: string, files: Readonly<Record<string, string>> = {}): unknown => {
  const expanded = expandAgents(message, agents, tree(files));
  if (expanded === null || typeof expanded === 'string') return expanded;
  return expanded.calls.map((call) => {
    const { agent, prompt } = JSON.parse(call.arguments) as Record<string, string>;
    return `${call.name} ${agent}: ${prompt}`;
  });
};

test.each([
  ['@reviewer look at src', ['agent reviewer: look at src']],
  ['@agent-reviewer: look at src', ['agent reviewer: look at src']],
  ['@"Code Writer" add a test', ['agent Code Writer: add a test']],
  ['Let (@reviewer) see it, @reviewer.', ['agent reviewer: Let (@reviewer) see it, @reviewer.']],
  [
    'Ask @reviewer, then @explore!',
    ['agent reviewer: Ask @reviewer, then @explore!', 'agent explore: Ask @reviewer, then @explore!'],
  ],
  ['@nobody look', null],
  ['ann@reviewer wrote', null],
  ['`@reviewer` is a name', null],
  ['@reviewer', 'The message was not sent: write what reviewer is to do after @reviewer.'],
])('%s', (message, expected) => {
  expect(tasks(message)).toEqual(expected);
});

test('a file of that name wins, and agent- tells the agent apart', () => {
  const files = { reviewer: 'x' };
  expect(tasks('@reviewer look', files)).toBeNull();
  expect(tasks('@agent-reviewer look', files)).toEqual(['agent reviewer: look']);
  expect([...completedAgents(agents, tree(files))].slice(0, 2)).toEqual([
    ['agent-reviewer', 'agent: Reviews code.'],
    ['Code Writer', 'agent: Writes code.'],
  ]);
});

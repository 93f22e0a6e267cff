import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'vitest';
import { problemsOf } from '../../../src/features/subagents/agent-problems.js';
import { agentsIn, toolsOf } from '../../../src/features/subagents/roles.js';
import { theirNames } from '../../../src/kernel/tools/claude-names.js';
import { builtinTools } from '../../../src/kernel/tools/builtin.js';
import { processes, toolOptions } from '../../kernel/tools/workbench.js';
import { expectReadings, formsFolder, useOf } from '../../brought-forms.js';

const folder = formsFolder('agents');
const offered = builtinTools({ ...toolOptions(), processes });

test('agents in the forms of other programs are read', () => {
  const found = agentsIn([{ folder, origin: 'project', root: folder }]);
  const forms = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.md'));
  const readings = forms.map((form) => {
    const path = join(folder, form);
    const role = found.agents.find((one) => one.path === path);
    const problems = problemsOf(found).flatMap((problem) =>
      problem.startsWith(path) ? [problem.slice(path.length).replace(/^:? /, '')] : [],
    );
    if (!role) return [form, { use: useOf(false, problems), problems }] as const;
    const { name, description, tools, withoutTools, model, maxTurns, skills, mode, memory, prompt } = role;
    const has = toolsOf(role, offered, theirNames).map((tool) => tool.name);
    const facts = {
      name,
      description,
      tools,
      withoutTools,
      model,
      maxTurns,
      skills,
      mode,
      memory,
      prompt: prompt(),
      has,
    };
    return [form, { use: useOf(true, problems), ...facts, problems }] as const;
  });
  expectReadings('agents', Object.fromEntries(readings));
});

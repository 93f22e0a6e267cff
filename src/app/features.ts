import { askAndPlan } from '../features/ask-and-plan/ask-and-plan-feature.js';
import { backgroundTasks } from '../features/background-tasks/background-tasks-feature.js';
import { codeExecution } from '../features/code-execution/code-execution-feature.js';
import { customTools } from '../features/custom-tools/custom-tools-feature.js';
import { diagnostics } from '../features/diagnostics/diagnostics-feature.js';
import { docsSearch } from '../features/docs-search/docs-search-feature.js';
import { evaluation } from '../features/eval/eval-feature.js';
import { goal } from '../features/goal/goal-feature.js';
import { historyImport } from '../features/history-import/history-import-feature.js';
import { hooks } from '../features/hooks/hooks-feature.js';
import { limitWait } from '../features/limit-wait/limit-wait-feature.js';
import { mcp } from '../features/mcp/mcp-feature.js';
import { memory } from '../features/memory/memory-feature.js';
import { plugins } from '../features/plugins/plugins-feature.js';
import { ownShellFeature } from '../features/own-shell/own-shell-feature.js';
import { outputStyles } from '../features/output-styles/output-styles-feature.js';
import { promptStash } from '../features/prompt-stash/prompt-stash-feature.js';
import { promptsAndSkills } from '../features/prompts-and-skills/prompts-and-skills-feature.js';
import { provenance } from '../features/provenance/provenance-feature.js';
import { review } from '../features/review/review-feature.js';
import { scheduledTasks } from '../features/scheduled-tasks/scheduled-tasks-feature.js';
import { sideQuestion } from '../features/side-question/side-question-feature.js';
import { smallTools } from '../features/small-tools/small-tools-feature.js';
import { subagents } from '../features/subagents/subagents-feature.js';
import { teamStore } from '../features/team-store/team-store-feature.js';
import { telemetry } from '../features/telemetry/telemetry-feature.js';
import { terminalPrograms } from '../features/terminal-programs/terminal-programs-feature.js';
import { todo } from '../features/todo/todo-feature.js';
import { undo } from '../features/undo/undo-feature.js';
import { web } from '../features/web/web-feature.js';
import { worktrees } from '../features/worktrees/worktrees-feature.js';
import { attachments } from '../features/attachments/attachments-feature.js';
import type { Feature, FeatureToolset } from '../kernel/console/feature.js';
import { Parts } from '../kernel/console/parts.js';
import type { Toolset } from '../kernel/core/tool.js';
import { coreToolsets } from '../kernel/tools/builtin.js';

/** Every feature of the program, in the order in which a model is shown their tools. */
export const features: readonly Feature[] = [
  web,
  scheduledTasks,
  smallTools,
  docsSearch,
  codeExecution,
  memory,
  customTools,
  askAndPlan,
  backgroundTasks,
  todo,
  subagents,
  mcp,
  hooks,
  promptsAndSkills,
  plugins,
  outputStyles,
  review,
  provenance,
  worktrees,
  historyImport,
  teamStore,
  undo,
  promptStash,
  sideQuestion,
  terminalPrograms,
  diagnostics,
  ownShellFeature,
  telemetry,
  attachments,
  goal,
  limitWait,
  evaluation,
];

/** The parts of features that the rest of the program uses, by keys of the kernel. */
export const provided = new Parts();
for (const feature of features) feature.provide?.(provided);

/** The sets of tools whose code is loaded once they are switched on. */
export const featureToolsets: readonly FeatureToolset[] = features.flatMap(({ toolsets }) => toolsets ?? []);

/** All sets of tools, in the order in which a model is shown them. */
export const toolsets: readonly Toolset[] = [...coreToolsets, ...featureToolsets];

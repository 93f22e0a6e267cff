// The code of the feature. It is loaded together, with the first goal.
export { goal } from './goal-command.js';
export { judgeGoal, nextMessage, stopAfter, stopAtLimit } from './goal-steps.js';
export { pursueGoal } from './pursue-goal.js';

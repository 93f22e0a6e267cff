// The code that reads and keeps rules that users write. A session without any does not need it.
export { readClaudeRule } from './claude-rules.js';
export { withRunRules } from './allowed-tools.js';
export { keepRules } from './own-rules.js';
export { openTurnModels } from './turn-models.js';
export { chosenRegistry, readTurnRules } from './turn-rules.js';

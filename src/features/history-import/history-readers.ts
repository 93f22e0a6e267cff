// The readers of the histories of other programs.
export { aider } from './aider.js';
export { claudeCode } from './claude-code.js';
export { codex } from './codex.js';
export { geminiCli } from './gemini.js';
export { opencode } from './opencode.js';
export { pi } from './pi.js';
export { qwenCode } from './qwen.js';

import type { EffortLevel } from './model-names.js';

/** The tools of a session that a part of its work may use. Names and patterns are those of `matchesTool`. */
export interface ToolChoice {
  /** Null: all of them. */
  readonly tools: readonly string[] | null;
  readonly withoutTools: readonly string[];
}

/** The settings that the file of a command or skill has for the turn that it starts. */
export interface TurnSettings extends ToolChoice {
  /** As written: `opus`, `openai/gpt-5.2, sonnet`. The first one that can be used counts; null for that of the
   * session. */
  readonly model: string | null;
  readonly effort: EffortLevel | null;
  /** Calls that do more than read are denied. */
  readonly onlyReads: boolean;
  /** Patterns of calls that run without approval, as `--allowed-tools` has them. */
  readonly allow: readonly string[];
}

/** Returns true for settings that change nothing. */
export function isUsualTurn({ model, effort, tools, withoutTools, onlyReads, allow }: TurnSettings): boolean {
  const isLimited = tools !== null || withoutTools.length > 0 || onlyReads;
  return model === null && effort === null && !isLimited && allow.length === 0;
}

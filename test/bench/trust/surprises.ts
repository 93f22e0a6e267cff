import { classifyShell } from '../../../src/kernel/permissions/shell/verdict.js';
import { context } from '../../kernel/permissions/judging.js';
import { tracePrograms } from './traced.js';

/** What the classifier said of a line beside what ran. */
export interface TracedLine {
  readonly command: string;
  readonly isDangerous: boolean;
  readonly listed: readonly string[];
  /** How many programs ran. */
  readonly executed: number;
  /** Those that ran without being on the classifier's list. */
  readonly unlisted: readonly string[];
}

/** Classifies the lines, runs each in the sandbox under a trace and compares. */
export function traceLines(commands: readonly string[]): readonly TracedLine[] {
  return tracePrograms(commands).map((ran, index) => {
    const command = commands[index] ?? '';
    const { findings, commands: found } = classifyShell(command, context);
    const listed = new Set(found.map(({ argv }) => (argv[0] ?? '').replace(/^.*\//, '')));
    return {
      command,
      isDangerous: findings.length > 0,
      listed: [...listed],
      executed: ran.size,
      unlisted: [...ran].filter((program) => !listed.has(program)),
    };
  });
}

/** A line that ran a program no one was notified of and that nobody would have been asked about. */
export function isSurprise({ isDangerous, unlisted }: TracedLine): boolean {
  return unlisted.length > 0 && !isDangerous;
}

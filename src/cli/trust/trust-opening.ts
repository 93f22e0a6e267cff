import type { EarlyFrame } from '../repl/early-frame.js';
import type { Notice } from '../setup.js';
import type { RootOptions } from '../options.js';
import { setUp, type Setup } from '../setup.js';
import { openTrustFile } from './trust-file.js';

/** `typed`: keys that came before the REPL had an input, in order. */
interface AskedSetup {
  readonly setup: Setup;
  readonly typed: readonly Uint8Array[];
}

/** Settles directory and configuration for a person at a terminal: a project that asks for more than it may say
 * untrusted is asked about, once for each content of its file, before anything of it acts. `typed` is what was typed
 * before and answered nothing. */
export async function setUpAsking(options: RootOptions, early: EarlyFrame | null): Promise<AskedSetup> {
  const setup = await setUp(options);
  const { project } = setup.loaded;
  if (!project || project.trusted || project.wanted.length === 0) return { setup, typed: [] };
  const answers = openTrustFile(setup.config.files.trust);
  if (answers.answerFor(project.file) !== null) return { setup, typed: [] };
  const typed = early?.withdraw().map(unsent) ?? [];
  const { askForTrust, terminalQuestion } = await import('./trust-question.js');
  const answer = await askForTrust(
    project,
    terminalQuestion(process.stdin, (chunk) => {
      typed.push(unsent(chunk));
    }),
  );
  if (answer === 'unanswered') return { setup, typed };
  const notices = remembered(() => {
    answers.record(project.file, answer === 'yes', Date.now());
  });
  const settled = answer === 'yes' ? await setUp(options, project.file.sha256) : setup;
  return { setup: { ...settled, notices: [...settled.notices, ...notices] }, typed };
}

/** Nothing is sent that nobody has seen in the input: Enter is a new line of the draft. */
function unsent(chunk: Uint8Array | string): Uint8Array {
  return Buffer.from(chunk).map((byte) => (byte === 0x0d ? 0x0a : byte));
}

function remembered(record: () => void): readonly Notice[] {
  try {
    record();
    return [];
  } catch (error) {
    return [
      {
        level: 'warn',
        code: 'trust_not_saved',
        message: `The answer holds for this run only: ${error instanceof Error ? error.message : String(error)}`,
      },
    ];
  }
}

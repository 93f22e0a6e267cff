import type { EarlyFrame } from '../repl/early-frame.js';
import type { Notice } from '../headless/headless.js';
import type { RootOptions } from '../options.js';
import { setUp, type Setup } from '../setup.js';
import { openTrustFile } from './trust-file.js';

/** Settles directory and configuration for a person at a terminal: a project that asks for more than it may say untrusted is asked about, once for
 *  each content of its file, before anything of it acts. */
export async function setUpAsking(options: RootOptions, early: EarlyFrame | null): Promise<Setup> {
  const setup = await setUp(options);
  const { project } = setup.loaded;
  if (!project || project.trusted || project.wanted.length === 0) return setup;
  const answers = openTrustFile(setup.config.files.trust);
  if (answers.answerFor(project.file) !== null) return setup;
  early?.withdraw();
  const { askForTrust, terminalQuestion } = await import('./trust-question.js');
  const answer = await askForTrust(project, terminalQuestion(process.stdin));
  if (answer === 'unanswered') return setup;
  const notices = remembered(() => { answers.record(project.file, answer === 'yes', Date.now()); });
  const settled = answer === 'yes' ? await setUp(options, project.file.sha256) : setup;
  return { ...settled, notices: [...settled.notices, ...notices] };
}

function remembered(record: () => void): readonly Notice[] {
  try {
    record();
    return [];
  } catch (error) {
    return [{ level: 'warn', code: 'trust_not_saved', message: `The answer holds for this run only: ${error instanceof Error ? error.message : String(error)}` }];
  }
}

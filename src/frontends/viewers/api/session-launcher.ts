import { loadStartChild } from '../../../kernel/tools/process/load-start-child.js';
import { Refusal } from '../http-guard.js';
import type { SessionLauncher } from './live-sessions.js';

/** A session exists within this time, or it is not started. */
const longestStartMs = 60_000;
const mostOutputChars = 64 * 1024;

/** Starts this program again, with `--bg`. */
export function sessionLauncher({
  env,
}: {
  readonly env: Readonly<Record<string, string | undefined>>;
}): SessionLauncher {
  return {
    start: async ({ prompt, cwd, model, title, source }) => {
      const options = [
        ...['--bg', '-C', cwd],
        ...(model === undefined ? [] : ['-m', model]),
        ...(title === undefined ? [] : ['--name', title]),
      ];
      const output = await runAgain(env, cwd, options, { prompt, source });
      const id = output.trim().split('\n')[0] ?? '';
      if (!/^[\w-]{6,64}$/.test(id)) throw new Refusal(409, `The session did not start: ${id}`, { code: 'failed' });
      return id;
    },
    resume: async (sessionId, cwd) => {
      await runAgain(env, cwd, ['--bg', '-r', sessionId], null);
    },
  };
}

async function runAgain(
  env: Readonly<Record<string, string | undefined>>,
  cwd: string,
  options: readonly string[],
  message: { readonly prompt: string; readonly source: string } | null,
): Promise<string> {
  const { openChild } = await loadStartChild();
  const child = await openChild({
    file: process.execPath,
    args: [...process.execArgv, process.argv[1] ?? '', ...options],
    cwd,
    env: definedOf(env),
  });
  if (!child.started) throw new Refusal(500, `The program could not be started again: ${child.error}`);
  const texts = [readText(child.output), readText(child.errors)] as const;
  child.input.end(message?.prompt ?? '');
  const late = setTimeout(() => process.kill(child.pid), longestStartMs);
  const { code } = await child.exited;
  clearTimeout(late);
  const [output, errors] = await Promise.all(texts);
  if (code === 0) return output;
  const [problem = '', hint = ''] = errors.trim().split('\n');
  throw new Refusal(409, problem.replace(/^agent: /, '') || `The session did not start: exit code ${code}.`, {
    code: 'failed',
    hint,
  });
}

async function readText(stream: AsyncIterable<Buffer | string>): Promise<string> {
  let text = '';
  for await (const chunk of stream) if (text.length < mostOutputChars) text += chunk.toString();
  return text;
}

function definedOf(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}

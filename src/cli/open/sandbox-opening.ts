import { createSecretPaths } from '../../policy/guarded-paths.js';
import type { Confine } from '../../tools/process/runner.js';
import { openSandbox as openKernelSandbox, type SandboxRequest } from '../../tools/sandbox/open-sandbox.js';
import { CliError, exit } from '../../commands/cli-error.js';
import { fail, ok, type DoctorCheck } from '../../commands/settings/doctor-checks.js';
import type { Setup } from '../setup.js';

type Place = Pick<Setup, 'cwd' | 'env' | 'home' | 'config'>;

/** The sandbox of this run, tried once with the profile that commands will get; undefined where none is wanted. Where
 * one is wanted and does not hold, nothing runs: throws a `CliError` with exit code 2 that names the fix. */
export async function openSandbox(setup: Pick<Setup, 'log'> & Place): Promise<Confine | undefined> {
  const { sandbox } = setup.config.policy;
  if (sandbox === 'off') return undefined;
  const opened = await openKernelSandbox(request(setup, sandbox));
  if (!opened.ok) throw new CliError(exit.usage, opened.problem, opened.fix);
  setup.log({ at: 'sandbox', message: opened.detail, sandbox, tools: opened.tools });
  return opened.confine;
}

/** What `agent doctor` says of the sandbox: the real profile is run, also where no sandbox is configured; then it is
 * only a warning that there is none. */
export async function checkSandbox(place: Place): Promise<DoctorCheck> {
  const { sandbox } = place.config.policy;
  const opened = await openKernelSandbox(request(place, sandbox === 'off' ? 'workspace' : sandbox));
  if (!opened.ok)
    return { ...fail('sandbox', opened.problem, opened.fix), status: sandbox === 'off' ? 'warn' : 'fail' };
  const tools = opened.tools.length === 0 ? '' : `; shown read-only besides the system: ${opened.tools.join(', ')}`;
  const root =
    process.getuid?.() === 0
      ? '; as root: files of root stay readable where they are shown, better run as an ordinary user'
      : '';
  return ok('sandbox', `${opened.detail}${tools}${root}`);
}

function request({ cwd, env, home, config }: Place, sandbox: SandboxRequest['sandbox']): SandboxRequest {
  const secrets = createSecretPaths(config.fs.deny, home);
  return { sandbox, workspace: cwd, home, env, isSecret: (path) => secrets.matches(path) };
}

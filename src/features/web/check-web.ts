import type { Config } from '../../kernel/config/sections.js';
import type { Environment } from '../../kernel/config/settings-file.js';
import type { DoctorCheck } from '../../kernel/console/command.js';
import { ok, warn } from '../../kernel/console/doctor-check.js';
import { proxyVariables } from '../../kernel/network/proxies.js';

/** Returns how far the web tools can check where a request goes; nothing where they are disabled. */
export function checkWeb({ tools, web }: Pick<Config, 'tools' | 'web'>, env: Environment): readonly DoctorCheck[] {
  if (!tools.toolsets.includes('web')) return [];
  const names = proxyVariables.flatMap((name) => [name.toLowerCase(), name]);
  const proxy = web.proxy === 'env' ? names.find((name) => (env[name] ?? '') !== '') : undefined;
  if (proxy === undefined) return [ok('web', 'requests go straight to addresses that were checked')];
  return [
    warn(
      'web',
      `the proxy of ${proxy} resolves names itself; names that this machine cannot resolve are not checked`,
      'Set web.proxy to none if this machine reaches the Internet without it.',
    ),
  ];
}

import type { Settings } from '../kernel/console/run-settings.js';
import { createSecretPaths } from '../kernel/permissions/guarded-paths.js';
import { loadPermissions } from './open-policy.js';

/** Returns a test for files that hold secrets (`fs.deny`), by absolute path. */
export async function secretFiles({
  config,
  home,
}: Pick<Settings, 'config' | 'home'>): Promise<(path: string) => boolean> {
  const secrets = createSecretPaths(config.fs.deny, home);
  return (path) => secrets.matches(path);
}

/** Returns why a search leaves a file out: it contains secrets, or a rule of the settings denies it or asks about it. */
export async function hiddenFiles(
  settings: Pick<Settings, 'config' | 'home'>,
): Promise<(path: string) => 'secret' | 'rule' | null> {
  const { config, home } = settings;
  const { deny, ask } = config.policy.rules;
  const { compileRules } = await loadPermissions();
  const isSecret = await secretFiles(settings);
  const ofFiles = [...deny, ...ask].filter(
    ({ path, argv, writes }) => path !== undefined && argv === undefined && writes !== true,
  );
  const stops = compileRules(ofFiles, home, 'stop');
  const isRuled = (path: string): boolean =>
    ofFiles.length > 0 && ['grep', 'doc_search', 'file_read'].some((tool) => stops({ tool, paths: [path] }) !== null);
  return (path) => (isSecret(path) ? 'secret' : isRuled(path) ? 'rule' : null);
}

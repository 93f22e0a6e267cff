import { join } from 'node:path';
import { readBoundedText } from '../../disk/bounded-file.js';

type Env = Readonly<Record<string, string | undefined>>;

const limits = { maxBytes: 1_048_576, longer: 'refuse', links: 'follow' } as const;

/** Returns the region of the profile in use (AWS_PROFILE, else `default`): from the credentials file, else from the
 * configuration file, as AWS's own library reads it. Undefined where neither has one. Source: AWS, "SDKs and Tools
 * Reference Guide", "Shared config and credentials files" (read 2026-11). */
export function profileRegion(env: Env): string | undefined {
  const profile = env['AWS_PROFILE']?.trim() || 'default';
  const home = env['HOME'] ?? '';
  const at = (variable: string, name: string): string | null =>
    env[variable]?.trim() || (home === '' ? null : join(home, '.aws', name));
  const files = [
    { file: at('AWS_SHARED_CREDENTIALS_FILE', 'credentials'), names: [profile] },
    // `[profile default]` goes before `[default]`.
    {
      file: at('AWS_CONFIG_FILE', 'config'),
      names: [`profile ${profile}`, ...(profile === 'default' ? [profile] : [])],
    },
  ];
  for (const { file, names } of files) {
    const sections = file === null ? null : sectionsOf(readBoundedText(file, limits) ?? '');
    const region = names.map((name) => sections?.get(name)).find((value) => value !== undefined);
    if (region !== undefined) return region;
  }
  return undefined;
}

/** Returns the region of each section of an INI file. Indented lines belong to the setting above them. */
function sectionsOf(text: string): ReadonlyMap<string, string> {
  const regions = new Map<string, string>();
  let section: string | null = null;
  for (const line of text.split(/\r?\n/)) {
    const head = /^\s*\[([^\]]+)\]/.exec(line)?.[1];
    if (head !== undefined) section = head.trim().replace(/^(profile)\s+["']?(.*?)["']?$/, '$1 $2');
    const value = /^region\s*=\s*(\S*)/.exec(line)?.[1] ?? '';
    if (section !== null && value !== '') regions.set(section, value);
  }
  return regions;
}

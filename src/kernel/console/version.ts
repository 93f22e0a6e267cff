declare const AGENT_VERSION: string;
declare const AGENT_COMMIT: string;

/** The version of the package. The build sets it; the sources run as `dev`. */
export const version: string = typeof AGENT_VERSION === 'string' ? AGENT_VERSION : 'dev';

/** The version with the commit and the day of its sources, where the build knew them: `0.1.0 (1a2b3c4d, 2026-11-29)`. */
export const versionLine: string =
  typeof AGENT_COMMIT === 'string' && AGENT_COMMIT !== '' ? `${version} (${AGENT_COMMIT})` : version;

/** The option that prints the version, as commander reads it. */
export const versionFlags = '-V, --version';

declare const AGENT_VERSION: string;

/** The version of the package. The build sets it; the sources run as `dev`. */
export const version: string = typeof AGENT_VERSION === 'string' ? AGENT_VERSION : 'dev';

/** The option that prints the version, as commander reads it. */
export const versionFlags = '-V, --version';

declare const AGENT_VERSION: string;

/** The version of the package; the bundle carries it, sources run as `dev`. */
export const version: string = typeof AGENT_VERSION === 'string' ? AGENT_VERSION : 'dev';

/** The option that prints it, as commander reads it. */
export const versionFlags = '-V, --version';

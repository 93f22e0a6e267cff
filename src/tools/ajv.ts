/** Ajv for draft 2020-12, in a module of its own: loaded late, and bundled with its name whatever the module format of
 * the package. */
export { Ajv2020 } from 'ajv/dist/2020.js';

/** How every schema is compiled, here and by the build. Errors carry the schema around them, so that a message can say
 * what was expected. */
export const ajvOptions = {
  strict: false,
  allErrors: false,
  coerceTypes: false,
  useDefaults: false,
  verbose: true,
  logger: false,
  addUsedSchema: false,
} as const;

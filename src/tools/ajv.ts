/** Ajv for draft 2020-12, in a module of its own: loaded late, and bundled with its name whatever the module format of the package. */
export { Ajv2020 } from 'ajv/dist/2020.js';

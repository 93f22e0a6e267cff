import type { ErrorObject } from 'ajv';

/** A validator as ajv makes one: false, and then `errors` says why. */
export interface SchemaValidator {
  (data: unknown): boolean;
  errors?: readonly ErrorObject[] | null;
}

/** Validators of the built-in tools by the JSON text of their schema. Empty in the sources; the build puts the compiled
 * ones in its place. */
export const precompiled: ReadonlyMap<string, SchemaValidator> = new Map();

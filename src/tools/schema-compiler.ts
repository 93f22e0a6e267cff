import type { ArgumentProblem, ToolArgs } from '../core/tool.js';
import { isRecord, type JsonSchema } from '../core/json.js';
import { precompiled, type SchemaValidator } from './precompiled-schemas.js';

/** What is wrong with the arguments, or null. */
export type Validate = (args: ToolArgs) => ArgumentProblem | null;
/** Throws on a schema that is not one. */
export type CompileSchema = (schema: JsonSchema) => Validate;

interface SchemaError {
  readonly keyword: string;
  readonly instancePath: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly message?: string | undefined;
  readonly parentSchema?: unknown;
}

/** Gives a compiler for draft 2020-12 (no coercion, no defaults). Ajv costs tens of milliseconds to load: where every
 * schema of `known` was compiled when the program was built, it is not loaded, and the compiler throws for any other
 * schema. */
export async function loadSchemaCompiler(known: readonly JsonSchema[] = []): Promise<CompileSchema> {
  const ready = known.length > 0 && known.every((schema) => precompiled.has(JSON.stringify(schema)));
  const compile = ready ? builtValidator : await ajvCompiler();
  return (schema) => {
    const validate = compile(schema);
    return (args) => (validate(args) ? null : explained(validate.errors?.[0]));
  };
}

function builtValidator(schema: JsonSchema): SchemaValidator {
  const validate = precompiled.get(JSON.stringify(schema));
  if (!validate) throw new Error('a schema that was not compiled when the program was built');
  return validate;
}

async function ajvCompiler(): Promise<(schema: JsonSchema) => SchemaValidator> {
  const { Ajv2020, ajvOptions } = await import('./ajv.js');
  const ajv = new Ajv2020(ajvOptions);
  return (schema) => ajv.compile(schema);
}

/** Names the argument, what was wrong with it and what was expected, from ajv's first error. */
export function explained(error: SchemaError | undefined): ArgumentProblem {
  if (!error) return { argument: '', problem: 'refused by the schema', expected: 'what the schema says' };
  const at = error.instancePath.slice(1);
  const inside = (name: unknown): string => [at, String(name)].filter((part) => part !== '').join('/');
  const properties =
    isRecord(error.parentSchema) && isRecord(error.parentSchema.properties) ? error.parentSchema.properties : {};
  switch (error.keyword) {
    case 'required': {
      const name = String(error.params.missingProperty);
      const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
      return {
        argument: inside(name),
        problem: 'missing',
        expected: isRecord(property) && property.type !== undefined ? described(property.type) : 'a value',
      };
    }
    case 'additionalProperties':
      return {
        argument: inside(error.params.additionalProperty),
        problem: 'unknown argument',
        expected: `only ${Object.keys(properties).join(', ')}`,
      };
    case 'type':
      return { argument: at, problem: 'wrong type', expected: described(error.params.type) };
    case 'minimum':
    case 'maximum':
      return {
        argument: at,
        problem: 'out of range',
        expected: `a value ${String(error.params.comparison)} ${String(error.params.limit)}`,
      };
    case 'minLength':
      return {
        argument: at,
        problem: 'too short',
        expected:
          error.params.limit === 1 ? 'at least 1 character' : `at least ${String(error.params.limit)} characters`,
      };
    case 'enum':
      return {
        argument: at,
        problem: 'not one of the allowed values',
        expected: JSON.stringify(error.params.allowedValues),
      };
    default:
      return { argument: at, problem: 'refused by the schema', expected: error.message ?? error.keyword };
  }
}

function described(type: unknown): string {
  return Array.isArray(type) ? type.map(String).join(' or ') : String(type);
}

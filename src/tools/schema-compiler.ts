import type { ArgumentProblem, ToolArgs } from '../core/tool.js';
import { isRecord, type JsonSchema } from '../core/json.js';

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

/** Loads ajv (draft 2020-12; no coercion, no defaults) and returns its compiler. Ajv costs tens of milliseconds, hence not at start-up. */
export async function loadSchemaCompiler(): Promise<CompileSchema> {
  const { Ajv2020 } = await import('./ajv.js');
  const ajv = new Ajv2020({ strict: false, allErrors: false, coerceTypes: false, useDefaults: false, verbose: true, logger: false, addUsedSchema: false });
  return (schema) => {
    const validate = ajv.compile(schema);
    return (args) => (validate(args) ? null : explained(validate.errors?.[0]));
  };
}

/** Names the argument, what was wrong with it and what was expected, from ajv's first error. */
export function explained(error: SchemaError | undefined): ArgumentProblem {
  if (!error) return { argument: '', problem: 'refused by the schema', expected: 'what the schema says' };
  const at = error.instancePath.slice(1);
  const inside = (name: unknown): string => [at, String(name)].filter((part) => part !== '').join('/');
  const properties = isRecord(error.parentSchema) && isRecord(error.parentSchema.properties) ? error.parentSchema.properties : {};
  switch (error.keyword) {
    case 'required': {
      const name = String(error.params.missingProperty);
      const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
      return { argument: inside(name), problem: 'missing', expected: isRecord(property) && property.type !== undefined ? described(property.type) : 'a value' };
    }
    case 'additionalProperties':
      return { argument: inside(error.params.additionalProperty), problem: 'unknown argument', expected: `only ${Object.keys(properties).join(', ')}` };
    case 'type': return { argument: at, problem: 'wrong type', expected: described(error.params.type) };
    case 'minimum': case 'maximum': return { argument: at, problem: 'out of range', expected: `a value ${String(error.params.comparison)} ${String(error.params.limit)}` };
    case 'minLength': return { argument: at, problem: 'too short', expected: `at least ${String(error.params.limit)} character(s)` };
    case 'enum': return { argument: at, problem: 'not one of the allowed values', expected: JSON.stringify(error.params.allowedValues) };
    default: return { argument: at, problem: 'refused by the schema', expected: error.message ?? error.keyword };
  }
}

function described(type: unknown): string {
  return Array.isArray(type) ? type.map(String).join(' or ') : String(type);
}

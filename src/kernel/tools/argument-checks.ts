/** A schema that ajv has compiled. */
export interface CompiledCheck {
  (value: unknown): boolean;
  errors?: readonly SchemaError[] | null;
}

/** An error of ajv, with the fields that messages use. */
export interface SchemaError {
  readonly keyword: string;
  readonly instancePath: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly message?: string | undefined;
  readonly parentSchema?: unknown;
}

/** The checks of the arguments of our own tools, by the text of their schemas. The build compiles them from
 * `config/tool-schemas.json`, so that a call loads no schema compiler. Here, before it has, there are none. */
export const argumentChecks: ReadonlyMap<string, CompiledCheck> = new Map();

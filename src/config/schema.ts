import document from '../../config/config.schema.json' with { type: 'json' };

/** The part of JSON Schema that `config/config.schema.json` uses; a test holds the checker to what ajv says of the same
 * values. */
export interface SchemaNode {
  readonly $ref?: string;
  readonly type?: string;
  readonly description?: string;
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly minLength?: number;
  readonly minItems?: number;
  readonly minProperties?: number;
  readonly required?: readonly string[];
  readonly pattern?: string;
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly additionalProperties?: boolean | SchemaNode;
  readonly propertyNames?: { readonly pattern: string };
  readonly items?: SchemaNode;
}

/** A key as its segments: `tools.limits.bash` is `['tools', 'limits', 'bash']`. Numbers are positions in a list. */
export type KeyPath = readonly (string | number)[];

export const configSchema: SchemaNode = document;
const definitions: Readonly<Record<string, SchemaNode>> = document.definitions;

/** The node that stands at `key` below `node`, or null where no such key may be. */
export function childNode(node: SchemaNode, key: string | number): SchemaNode | null {
  if (typeof key === 'number') return node.items ? follow(node.items) : null;
  if (node.properties && Object.hasOwn(node.properties, key)) return follow(node.properties[key] ?? {});
  if (typeof node.additionalProperties !== 'object') return null;
  if (node.propertyNames && !new RegExp(node.propertyNames.pattern, 'u').test(key)) return null;
  return follow(node.additionalProperties);
}

function follow(node: SchemaNode): SchemaNode {
  return node.$ref === undefined ? node : (definitions[node.$ref.slice('#/definitions/'.length)] ?? {});
}

/** True for a node whose keys are settings of their own; everything else (values, lists, objects that are open or have
 * required keys) is replaced whole. */
export function isSection(node: SchemaNode): boolean {
  if (node.required !== undefined) return false;
  return node.properties !== undefined || typeof node.additionalProperties === 'object';
}

/** Every key there is, as text; `<name>` stands for a name of the user's choice. */
export function knownKeys(node: SchemaNode = configSchema, prefix = ''): string[] {
  const named = Object.keys(node.properties ?? {}).filter((key) => key !== '$schema');
  const keys = typeof node.additionalProperties === 'object' ? [...named, '<name>'] : named;
  return keys.flatMap((key) => {
    const child =
      key === '<name>' && typeof node.additionalProperties === 'object'
        ? node.additionalProperties
        : childNode(node, key);
    const path = `${prefix}${key}`;
    return child && isSection(child) ? [path, ...knownKeys(child, `${path}.`)] : [path];
  });
}

/** The text of a key, as a person writes it. */
export function keyText(path: KeyPath): string {
  return path.join('.');
}

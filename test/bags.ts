import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync } from 'oxc-parser';

/** An object type with many members. */
export interface Bag {
  readonly file: string;
  readonly name: string;
  readonly members: number;
  /** True when a member is a function or names a port: something that does work, not a value. */
  readonly works: boolean;
}

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [field: string]: unknown;
}

/** Interfaces and object types below `root` with more than `most` members. */
export function bagsBelow(root: string, most: number): Bag[] {
  const names = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => /\.tsx?$/.test(name));
  return names.toSorted().flatMap((file) => bagsIn(file, readFileSync(join(root, file), 'utf8'), most));
}

export function bagsIn(file: string, source: string, most: number): Bag[] {
  const found: Bag[] = [];
  const visit = (node: Node, name: string): void => {
    const named = node.type === 'TSInterfaceDeclaration' || node.type === 'TSTypeAliasDeclaration';
    const here = named ? String((node.id as Node).name) : name;
    const members = membersOf(node);
    if (members.length > most) {
      const works = members.some((member) => doesWork(member, source));
      found.push({ file, name: here, members: members.length, works });
    }
    for (const child of Object.values(node).flat()) if (isNode(child)) visit(child, here);
  };
  visit(parseSync(file, source).program as unknown as Node, '');
  return found;
}

function membersOf(node: Node): readonly Node[] {
  if (node.type === 'TSInterfaceBody') return node.body as readonly Node[];
  return node.type === 'TSTypeLiteral' ? (node.members as readonly Node[]) : [];
}

function doesWork(member: Node, source: string): boolean {
  if (member.type === 'TSMethodSignature' || member.type === 'TSCallSignatureDeclaration') return true;
  return /=>/.test(source.slice(member.start, member.end));
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && typeof (value as { type?: unknown }).type === 'string';
}

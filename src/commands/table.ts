import { features } from '../app/features.js';
import type { Section } from '../kernel/console/command.js';
import { conversation } from './conversation-table.js';
import { record } from './record-table.js';
import { settings } from './settings-table.js';

/** The headings of `agent help` in their order. Those that only a feature has come before the last. */
const headings: readonly (string | null)[] = [
  null,
  'Sessions and the record:',
  'Team:',
  'Memory:',
  'Tasks:',
  'Take back:',
  'Tools, models and settings:',
];
const lastHeading = 'About the program:';

/** Puts the entries below one heading together. */
function merged(sections: readonly Section[]): readonly Section[] {
  const others = sections.map(({ heading }) => heading).filter((heading) => heading !== lastHeading);
  return [...new Set([...headings, ...others, lastHeading])].map((heading) => ({
    heading,
    entries: underParents(sections.filter((section) => section.heading === heading).flatMap(({ entries }) => entries)),
  }));
}

/** Puts verbs behind the command that they belong to: `tools add`, which a feature has, behind `tools`. */
function underParents(entries: Section['entries']): Section['entries'] {
  const groups = new Map<string, Section['entries']>();
  for (const entry of entries) {
    const [word = ''] = (entry.line ?? entry.slash)?.[0].split(' ') ?? [];
    groups.set(word, [...(groups.get(word) ?? []), entry]);
  }
  return [...groups.values()].flat();
}

/** Every command of the program. The command line, `agent help`, `/help`, the menu and the completion scripts are made
 * from it. A command is loaded when it is used: nothing here, in the tables and in the features may import one. */
export const table: readonly Section[] = merged([
  ...conversation,
  ...record,
  ...settings,
  ...features.flatMap(({ commands }) => commands ?? []),
]);

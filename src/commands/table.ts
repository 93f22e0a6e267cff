import type { Section } from './command.js';
import { conversation } from './conversation-table.js';
import { record } from './record-table.js';
import { settings } from './settings-table.js';

/** Every command of the program. The command line, `agent help`, `/help`, the menu and the completion scripts are made
 * from it. A verb is loaded when it is used: nothing here and in the three tables may import one. */
export const table: readonly Section[] = [...conversation, ...record, ...settings];

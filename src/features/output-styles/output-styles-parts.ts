import { PartKey } from '../../kernel/console/parts.js';

/** The output style of the sessions that begin in this run. */
export interface ChosenStyle {
  /** Null: none is set. */
  name(): string | null;
  choose(name: string): void;
}

export const chosenStyle = new PartKey<ChosenStyle>('output style');

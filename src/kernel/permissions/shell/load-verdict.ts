/** Loads what judges command lines: the parser and the tables of programs are large, and many sessions run no command. */
export const loadVerdict = () => import('./verdict.js');

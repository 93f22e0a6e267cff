/** Loads the code of commands in files and skills, which a run without any does not need. */
export const loadTexts = () => import('./prompt-texts.js');

// The code of this feature. It is loaded with the first use.
export { checkCommands, listCommands, showCommand } from './list-commands.js';
export { checkSkills, checkTextFiles, listSkills, showSkill, skills } from './list-skills.js';
export { initProject, reviewChanges } from './prompt-commands.js';
export * from './prompt-texts.js';

// The commands of this feature. They are loaded together, with the first that is used.
export { checkSkills, listSkills, showSkill, skills } from './list-skills.js';
export { initProject, reviewChanges } from './prompt-commands.js';

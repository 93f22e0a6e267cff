// The code of commands in files and skills. It is loaded together, with the first of them that is found.
export { commandsIn, unusableCommands } from './command-files.js';
export { expandTemplate } from './expand-template.js';
export { openKeptHeads } from '../../kernel/config/kept-heads.js';
export { partsOf, readSkillText, skillsIn } from './read-skills.js';
export { newSkills, plainMessage, skillMessage, skillsBlock, skillTool } from './use-skill.js';
export { turnExpansion } from './turn-fields.js';

// The importers of commands and skills. They are loaded with the first import.
export { commandImporter } from './plan-command-import.js';
export { skillImporter } from './plan-skill-import.js';

// The code of this feature. It is loaded with the first use.
export { instructionImporter } from './plan-instruction-import.js';
export { statusLineImporter } from './plan-status-line-import.js';
export { styleImporter } from './plan-style-import.js';

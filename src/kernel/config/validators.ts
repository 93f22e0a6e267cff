import { Ajv } from 'ajv';
import themeSchema from '../../../config/theme.schema.json' with { type: 'json' };
import { configSchema } from './settings-schema.js';

/** The build compiles these ahead, so that a start loads no schema compiler (`config/compiled-checks.mjs`). */
const ajv = new Ajv({ allErrors: true });

export const settings = ajv.compile(configSchema);
export const theme = ajv.compile(themeSchema);

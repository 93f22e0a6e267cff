import { Ajv } from 'ajv';
import settingsSchema from '../../config/config.schema.json' with { type: 'json' };
import themeSchema from '../../config/theme.schema.json' with { type: 'json' };

/** The build compiles these ahead, so that a start loads no schema compiler (`config/build.mjs`). */
const ajv = new Ajv({ allErrors: true });

export const settings = ajv.compile(settingsSchema);
export const theme = ajv.compile(themeSchema);

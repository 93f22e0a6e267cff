import { type Here, type ProjectPart, projectPlaces, type TrustedHere } from '../../kernel/config/project.js';
import type { PromptStyle, RunHost, RunPart } from '../../kernel/console/feature.js';
import type * as code from './output-styles-code.js';
import { chosenStyle } from './output-styles-parts.js';

/** Loads the code of output styles, which a run without one does not need. */
type LoadStyles = () => Promise<typeof code>;

/** Returns the output styles of a project. */
export async function styleParts(here: Here, load: LoadStyles): Promise<readonly ProjectPart[]> {
  const places = projectPlaces(here, 'output-styles');
  return places.length === 0 ? [] : (await load()).partsOfStyles(places);
}

/** Opens what gives the chosen style to new sessions. */
export function openStylePart({ settings, parts }: RunHost, load: LoadStyles): RunPart {
  let name = settings.config.request.outputStyle;
  parts.add(chosenStyle, {
    name: () => name,
    choose: (other) => {
      name = other;
    },
  });
  return { style: async () => (name === null ? null : await promptStyle(settings, name, load)) };
}

async function promptStyle(settings: TrustedHere, name: string, load: LoadStyles): Promise<PromptStyle> {
  const { findStyles, styleNamed } = await load();
  const style = styleNamed(name, await findStyles(settings));
  if (typeof style === 'string')
    return {
      text: '',
      keepsCoding: true,
      notices: [{ level: 'warn', code: 'output_style', message: `${style} None is used.` }],
    };
  return {
    text: style.body === '' ? '' : `# Output style: ${style.name}\n\n${style.body}`,
    keepsCoding: style.keepsCoding,
    notices: [],
  };
}

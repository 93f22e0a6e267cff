import { placesHere, type TrustedHere } from '../../kernel/config/project.js';
import type { CommandHandler } from '../../kernel/console/command.js';
import {
  inactiveFiles,
  inactiveLines,
  type List,
  listedFile,
  type ListedFile,
  listVerb,
  showVerb,
  unknownName,
} from '../../kernel/console/listed-files.js';
import { sanitize } from '../../kernel/core/sanitize.js';
import { findStyles, type OutputStyle, styleNamed, stylesIn } from './read-styles.js';

interface StylesHere {
  readonly styles: readonly OutputStyle[];
  readonly inactive: readonly ListedFile[];
  /** Sentences. */
  readonly problems: readonly string[];
}

async function findAll(settings: TrustedHere): Promise<StylesHere> {
  const { aside } = await placesHere(settings, 'output-styles');
  const { styles, shadowed, leftOut, problems } = await findStyles(settings);
  const untrusted = stylesIn(aside).styles.filter(({ path }) => path !== null);
  return { styles, inactive: inactiveFiles({ shadowed, leftOut, untrusted }), problems };
}

function rowOf(style: OutputStyle): Readonly<Record<string, unknown>> {
  const { description, keepsCoding } = style;
  return { ...listedFile(style, null), description, keep_coding_instructions: keepsCoding };
}

function linesOf({ name, origin, description, path, keepsCoding }: OutputStyle): readonly string[] {
  const coding = keepsCoding ? '' : ' (without the instructions about coding)';
  return [`${name} (${origin}): ${description}${coding}`, ...(path === null ? [] : [`  ${path}`])];
}

const stylesOf: List = async ({ settings }) => {
  const { styles, inactive, problems } = await findAll(await settings());
  return {
    rows: [...styles.map(rowOf), ...inactive],
    lines: [...styles.flatMap(linesOf), ...inactiveLines(inactive)],
    problems,
  };
};

export const listStyles: CommandHandler = listVerb('agent output-styles list --json', stylesOf);

/** Shows a style with its text. */
export const showStyle: CommandHandler = showVerb(
  'agent output-styles show explanatory',
  async ({ settings }, name) => {
    const { styles } = await findAll(await settings());
    const style = styleNamed(name, { styles, leftOut: [] });
    if (typeof style === 'string')
      throw unknownName(
        'output style',
        name,
        styles.map((one) => one.name),
      );
    return { row: { ...rowOf(style), text: style.body }, lines: [...linesOf(style), '', sanitize(style.body)] };
  },
);

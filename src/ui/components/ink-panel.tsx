import { Box, renderToString, Text } from 'ink';
import type { ReactNode } from 'react';
import { textWidth } from '../../terminal/width.js';
import type { Theme } from '../theme.js';
import type { Panel, PanelRow, RunningRow } from './panel.js';

const waitingText = 'Keys go to your draft until you pause';

/** One row, cut at the edge, never wrapped. */
function Row({ children }: { readonly children: string }): ReactNode {
  return <Text wrap="truncate-end">{children === '' ? ' ' : children}</Text>;
}

/** What the keys do now. */
function Keys({
  text,
  panel,
  theme,
}: {
  readonly text: string;
  readonly panel: { readonly waits: boolean };
  readonly theme: Theme;
}): ReactNode {
  return <Row>{panel.waits ? theme.paint('warn', waitingText) : theme.paint('dim', text)}</Row>;
}

interface ChoicesParts {
  readonly rows: readonly PanelRow[];
  readonly selected: number;
  readonly theme: Theme;
  readonly columns: number;
  readonly marked?: readonly string[];
}

/** The labels get the room that the details leave, and a good half of the row where both are long. */
function Choices({ rows, selected, theme, columns, marked = [] }: ChoicesParts): ReactNode {
  const widest = (text: (row: PanelRow) => string): number => Math.max(...rows.map((row) => textWidth(text(row))), 0);
  const room = Math.max(12, columns - 4);
  const labelWidth = Math.min(
    widest((row) => row.label),
    Math.max(room - widest((row) => row.detail), Math.floor(room * 0.6)),
  );
  const label = (row: PanelRow, isSelected: boolean): string => {
    const shown = markWords(row.label, marked, theme);
    return isSelected ? theme.paint('bold', shown) : shown;
  };
  return (
    <Box flexDirection="column">
      {rows.map((row, index) => (
        <Box key={`${index} ${row.label}`}>
          <Box flexShrink={0} width={2}>
            <Text>{index === selected ? theme.paint('prompt', theme.glyphs.prompt) : '  '}</Text>
          </Box>
          <Box flexShrink={0} width={labelWidth} marginRight={2}>
            <Row>{label(row, index === selected)}</Row>
          </Box>
          <Box flexShrink={1}>
            <Row>{theme.paint('dim', row.detail)}</Row>
          </Box>
        </Box>
      ))}
    </Box>
  );
}

/** Where a word that was looked for stands, whatever its capitals. */
function markWords(text: string, words: readonly string[], theme: Theme): string {
  const wanted = words.filter((word) => word !== '').map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return wanted.length === 0
    ? text
    : text.replace(new RegExp(wanted.join('|'), 'giu'), (found) => theme.paint('warn', found));
}

interface MenuParts {
  readonly panel: Extract<Panel, { type: 'menu' }>;
  readonly theme: Theme;
  readonly columns: number;
}

function Menu({ panel, theme, columns }: MenuParts): ReactNode {
  return (
    <Box flexDirection="column">
      <Choices rows={panel.rows} selected={panel.selected} theme={theme} columns={columns} />
      {panel.more > 0 ? <Row>{theme.paint('dim', `  ${theme.glyphs.ellipsis} ${panel.more} more`)}</Row> : null}
    </Box>
  );
}

interface PickerParts {
  readonly panel: Extract<Panel, { type: 'picker' }>;
  readonly theme: Theme;
  readonly columns: number;
}

function Picker({ panel, theme, columns }: PickerParts): ReactNode {
  return (
    <Box flexDirection="column">
      <Choices rows={panel.rows} selected={panel.selected} theme={theme} columns={columns} marked={panel.marked} />
      <Keys
        text={`${panel.position} ${theme.glyphs.dot} type to filter, enter chooses, esc leaves`}
        panel={panel}
        theme={theme}
      />
      <Row>{`${theme.paint('bold', `${panel.title}:`)} ${panel.query}`}</Row>
    </Box>
  );
}

function Approval({
  panel,
  theme,
}: {
  readonly panel: Extract<Panel, { type: 'approval' }>;
  readonly theme: Theme;
}): ReactNode {
  const { paint } = theme;
  return (
    <Box flexDirection="column">
      <Row>{`${paint('warn', 'Allow this call?')} ${paint('bold', panel.title)} ${paint('dim', `(${panel.risk})`)}`}</Row>
      {panel.above > 0 ? <Row>{paint('dim', `${theme.glyphs.up} ${panel.above} lines above`)}</Row> : null}
      <Box flexDirection="column" paddingLeft={2}>
        {panel.body.map(({ text, tone }, index) => (
          <Row key={`${index}`}>{tone ? paint(tone, text) : text}</Row>
        ))}
      </Box>
      {panel.below > 0 ? (
        <Row>
          {paint(
            'warn',
            `${theme.glyphs.ellipsis} ${panel.below} more lines; page down to see them before you can say yes`,
          )}
        </Row>
      ) : null}
      {panel.reasons.map((reason) => (
        <Row key={`r${reason}`}>{paint('warn', '! ') + reason}</Row>
      ))}
      {panel.targets.map((target) => (
        <Row key={`t${target}`}>{`${paint('dim', theme.glyphs.arrow)} ${target}`}</Row>
      ))}
      {panel.message === null ? <Keys text={panel.hint} panel={panel} theme={theme} /> : null}
      {panel.message === null ? (
        panel.choices.map((choice, index) => (
          <Choice key={choice} choice={choice} selected={index === panel.selected} waits={panel.waits} theme={theme} />
        ))
      ) : (
        <Row>{`Why not? ${panel.message}`}</Row>
      )}
    </Box>
  );
}

interface ChoiceParts {
  readonly choice: string;
  readonly selected: boolean;
  readonly waits: boolean;
  readonly theme: Theme;
}

function Choice({ choice, selected, waits, theme: { paint, glyphs } }: ChoiceParts): ReactNode {
  const row = selected ? paint('prompt', glyphs.prompt) + paint('bold', choice) : `  ${choice}`;
  return <Row>{waits ? paint('dim', `${selected ? glyphs.prompt : '  '}${choice}`) : row}</Row>;
}

function Running({
  panel,
  theme,
}: {
  readonly panel: Extract<Panel, { type: 'running' }>;
  readonly theme: Theme;
}): ReactNode {
  return (
    <Box flexDirection="column">
      {panel.calls.map((call) => (
        <RunningCall key={call.title} call={call} theme={theme} />
      ))}
      {panel.waiting > 0 ? (
        <Row>{theme.paint('dim', `${panel.waiting} more ${panel.waiting === 1 ? 'call waits' : 'calls wait'}`)}</Row>
      ) : null}
    </Box>
  );
}

function RunningCall({ call, theme }: { readonly call: RunningRow; readonly theme: Theme }): ReactNode {
  return (
    <Box flexDirection="column">
      {call.tail.map((line, index) => (
        <Row key={`${index}`}>{line}</Row>
      ))}
      <Row>{theme.paint('dim', `${theme.glyphs.ellipsis} running ${call.elapsed}`)}</Row>
    </Box>
  );
}

function Pager({
  panel,
  theme,
}: {
  readonly panel: Extract<Panel, { type: 'pager' }>;
  readonly theme: Theme;
}): ReactNode {
  return (
    <Box flexDirection="column">
      <Row>{theme.paint('bold', panel.title)}</Row>
      {panel.lines.map((line, index) => (
        <Row key={`${index}`}>{line}</Row>
      ))}
      <Keys
        text={`${panel.position} ${theme.glyphs.dot} arrows and page keys scroll, q leaves`}
        panel={panel}
        theme={theme}
      />
    </Box>
  );
}

function Layout({
  panel,
  theme,
  columns,
}: {
  readonly panel: Panel;
  readonly theme: Theme;
  readonly columns: number;
}): ReactNode {
  switch (panel.type) {
    case 'menu':
      return <Menu panel={panel} theme={theme} columns={columns} />;
    case 'picker':
      return <Picker panel={panel} theme={theme} columns={columns} />;
    case 'approval':
      return <Approval panel={panel} theme={theme} />;
    case 'running':
      return <Running panel={panel} theme={theme} />;
    case 'pager':
      return <Pager panel={panel} theme={theme} />;
    default:
      return panel satisfies never;
  }
}

/** The rows of a panel as Ink lays them out at `columns`. Colours come from the theme, not from what Ink finds out
 * about the terminal. */
export function renderPanel(panel: Panel, theme: Theme, columns: number): readonly string[] {
  const width = Math.max(1, columns - 1);
  const frame = renderToString(<Layout panel={panel} theme={theme} columns={width} />, { columns: width });
  return frame === '' ? [] : frame.split('\n');
}

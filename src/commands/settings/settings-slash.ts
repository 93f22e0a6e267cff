import type { Workbench } from '../../cli/session/assemble.js';
import type { SessionDesk } from '../../cli/repl/current-session.js';
import { editConfigFile } from '../../config/settings-file.js';
import { knownEvent } from '../../core/event.js';
import type { Json } from '../../core/json.js';
import type { ApprovalMode } from '../../core/policy.js';
import { didYouMean } from '../../core/text.js';
import type { Command, CommandContext } from '../../ui/command.js';
import type { Kept } from '../../ui/repl-options.js';
import { configRows, originText } from './configure.js';

const modes: Readonly<Record<ApprovalMode, string>> = {
  always: 'every call waits for a yes',
  mutating: 'calls that write or run wait for a yes',
  dangerous: 'dangerous calls wait for a yes',
  never: 'nothing waits but secret files and protected paths',
};

/** `/approval`, `/config`, `/diff`. */
export function settingsCommands(bench: Workbench, desk: SessionDesk): readonly Command[] {
  return [
    {
      name: 'approval',
      description: 'which calls wait for a yes; --keep keeps it',
      argument: `[${Object.keys(modes).join('|')}]`,
      run: (argument, context) => changeApproval(bench, argument, context),
    },
    {
      name: 'config',
      description: 'every setting and where it came from',
      run: (_argument, context) => {
        const rows = configRows(bench.setup.loaded);
        const said = rows
          .filter((row) => row.value !== null && row.origin !== 'default')
          .map((row) => `${row.key} = ${valueText(row.value)} (${originText(row)})`);
        const rest = rows
          .filter((row) => row.value !== null && row.origin === 'default')
          .map((row) => `${row.key} = ${valueText(row.value)}`);
        const unset = rows.filter((row) => row.value === null).map((row) => row.key);
        const parts = [
          ...said,
          ...(said.length > 0 ? [''] : []),
          'Defaults:',
          ...rest,
          '',
          `Not set: ${unset.join(', ')}`,
        ];
        return context.page('Settings', parts.join('\n'), { prose: true });
      },
    },
    {
      name: 'diff',
      description: 'what the calls of this session changed in files',
      run: (_argument, context) => {
        const diffs = desk
          .current()
          .session.events()
          .flatMap((raw) => {
            const event = knownEvent(raw);
            return event?.kind === 'tool_result' && event.data.diff
              ? [`[${event.seq}] ${event.content}\n${event.data.diff}`]
              : [];
          });
        if (diffs.length > 0) return context.page('Changes', diffs.join('\n'));
        context.notice('info', 'No file was written or edited in this session.');
        return Promise.resolve();
      },
    },
  ];
}

/** Whether a command is to keep what it sets, and the rest of its argument. */
export function keepWish(argument: string): { readonly rest: string; readonly keeps: boolean } {
  const words = argument.split(/\s+/).filter((word) => word !== '');
  const rest = words.filter((word) => word !== '--keep');
  return { rest: rest.join(' '), keeps: rest.length < words.length };
}

/** Keeps a setting where that was wished, else says how long it counts and how to keep it. */
export async function keptOrHow(
  bench: Workbench,
  key: 'approval' | 'model',
  value: string,
  keeps: boolean,
): Promise<string> {
  return keeps
    ? (await keepSetting(bench, key, value)).said
    : `This counts until the program ends; /${key} ${value} --keep keeps it.`;
}

/** Writes one setting into the user's configuration, and says so. */
export async function keepSetting(
  { setup, options }: Pick<Workbench, 'setup' | 'options'>,
  key: string,
  value: string,
): Promise<Kept> {
  if (options.ephemeral === true) return { done: false, said: 'It is not kept: --ephemeral keeps nothing on disk.' };
  const { config: file } = setup.config.files;
  try {
    const edited = await editConfigFile(file, key.split('.'), value);
    if (!edited.ok) return { done: false, said: `It is not kept: ${edited.problem.message}` };
  } catch (error) {
    return { done: false, said: `It is not kept: ${error instanceof Error ? error.message : String(error)}` };
  }
  const origin = setup.loaded.origins[key]?.kind ?? 'default';
  const overruled =
    origin === 'default' || origin === 'user'
      ? ''
      : ` The next start overrules it by the ${origin === 'flag' ? 'option' : origin}, as this one did.`;
  return { done: true, said: `Kept in ${file}: ${key} = ${JSON.stringify(value)}.${overruled}` };
}

/** On one line, with room to break between the items of a list. */
function valueText(value: Json): string {
  return Array.isArray(value) && value.length > 0
    ? value.map((item) => JSON.stringify(item)).join(', ')
    : JSON.stringify(value);
}

async function changeApproval(bench: Workbench, argument: string, context: CommandContext): Promise<void> {
  const { rest: asked, keeps } = keepWish(argument);
  const names = Object.keys(modes) as ApprovalMode[];
  const chosen =
    asked === ''
      ? await context.pick({
          title: `Approval (now ${bench.policy.mode()})`,
          items: names.map((name) => ({ label: name, detail: modes[name], value: name })),
          current: bench.policy.mode(),
        })
      : (names.find((name) => name === asked) ?? null);
  if (chosen === null) {
    if (asked !== '')
      context.notice(
        'warn',
        `There is no approval mode ${asked}. ${didYouMean(asked, names)} Known: ${names.join(', ')}.`,
      );
    return;
  }
  bench.policy.switchTo(chosen);
  context.refresh();
  context.notice('info', `From now on ${modes[chosen]}. ${await keptOrHow(bench, 'approval', chosen, keeps)}`);
}

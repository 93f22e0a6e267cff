import { type CommandHandler, CliError, type CommandLine, exit, type Printer } from '../../kernel/console/command.js';
import { toolFileText } from '../../kernel/console/tool-files-port.js';
import { spelledLine } from '../../kernel/core/text.js';
import { openToolFiles } from './allowed-files.js';

interface Options {
  readonly sha256?: string;
}

export const addTools: CommandHandler = {
  line: {
    example: 'agent tools add ./insert_clip',
    options: (command) => command.option('--sha256 <hash>', 'allow the files with this hash without asking'),
    run: (line, [path = ''], options: Options) => add(line, path, options),
  },
};

export const removeTools: CommandHandler = {
  line: {
    example: 'agent tools remove insert_clip',
    run: async ({ out, settings }, [what = '']) => {
      const path = openToolFiles(await settings()).forget(what);
      if (path === null)
        throw new CliError(exit.usage, `no tool \`${what}\` was allowed`, 'Give its folder, its file or the tool.');
      out.print(`${spelledLine(path)} is no longer allowed. The files were not changed.\n`);
      return exit.done;
    },
  },
};

/** Shows what a file of tools would run and asks, or compares the hash that was given. */
async function add({ out, settings }: CommandLine, path: string, { sha256 }: Options): Promise<number> {
  const read = await settings();
  const files = openToolFiles(read);
  const file = files.read(path);
  out.print(`${read.guard.text(toolFileText(file))}\n`);
  if (sha256 !== undefined && sha256 !== file.sha256)
    throw new CliError(exit.usage, `the hash of the files is not ${sha256}`, 'Check them again.');
  if (sha256 === undefined && !file.isAllowed && !(await isWanted(out))) {
    out.print('Not added.\n');
    return exit.failed;
  }
  await files.refuseUnusable(file);
  files.allow(file);
  out.print('Allowed until one of its files changes. The set `custom` offers it: agent --tools +custom\n');
  return exit.done;
}

async function isWanted(out: Printer): Promise<boolean> {
  if (!out.canAsk)
    throw new CliError(exit.usage, 'tools can only be reviewed in a terminal', 'Give --sha256 <hash> elsewhere.');
  const reply = await out.ask('Allow these tools, here and until one of the files changes? [y/N] ');
  return /^y(es)?$/i.test(reply.trim());
}

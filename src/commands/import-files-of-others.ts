import { kindWords, planImport } from '../app/importing.js';
import { CliError, type CommandHandler, type CommandLine, exit } from '../kernel/console/command.js';
import {
  importKinds,
  type ImportKind,
  type ImportPlan,
  importPrograms,
  type ImportSource,
} from '../kernel/console/importer.js';
import { columns, oneLine, printJson } from '../kernel/console/line-output.js';
import { didYouMean, spelledLine } from '../kernel/core/text.js';

interface Options {
  readonly from?: string;
  readonly only?: string;
  readonly dryRun?: boolean;
  readonly json?: boolean;
  readonly yes?: boolean;
}

/** `agent import`: copies what other programs have into the user's own folder. */
export const importFilesOfOthers: CommandHandler = {
  line: {
    example: 'agent import --from claude-code,codex --only mcp,skills --dry-run',
    options: (command) =>
      command
        .option('--from <programs>', `from these programs only: ${importPrograms.join(', ')}`)
        .option('--only <kinds>', `only these kinds: ${importKinds.join(', ')}`)
        .option('--dry-run', 'list what would be copied, and copy nothing')
        .option('--json', 'as JSON')
        .option('--yes', 'copy everything without asking'),
    run: async (line, _args, options: Options) => {
      const programs = chosenOf('--from', 'program', options.from, importPrograms);
      const kinds = chosenOf('--only', 'kind', options.only, importKinds);
      const settings = await line.settings();
      if (settings.ephemeral && !options.dryRun)
        throw new CliError(exit.usage, '--ephemeral writes nothing to disk', 'Add --dry-run, or start without it.');
      const plans = await planImport({ settings, programs, line }, kinds);
      if (!options.dryRun && plans.length > 0) return await copyChosen(line, plans, options);
      return report(line, { sources: plans.map(({ source }) => source), lines: linesOf(plans) }, options, 'found');
    },
  },
};

async function copyChosen(line: CommandLine, plans: readonly ImportPlan[], options: Options): Promise<number> {
  const asks = !options.yes;
  const found: Listing = { sources: plans.map(({ source }) => source), lines: linesOf(plans) };
  if (asks && !options.json) show(line, found, 'found');
  const chosen = await chosenKinds(line, found.sources, options);
  const done: ImportSource[] = [];
  for (const plan of plans)
    done.push(chosen.includes(plan.source.kind) ? await plan.apply() : { ...plan.source, take: 0 });
  const named = asks ? found.lines : [];
  const lines = [...found.lines, ...skippedLines(done)].filter((text) => !named.includes(text));
  return report(line, { sources: done, lines }, options, 'done');
}

/** Returns the names in an option; all without one. */
function chosenOf<Name extends string>(
  option: string,
  what: string,
  given: string | undefined,
  known: readonly Name[],
): readonly Name[] {
  if (given === undefined) return known;
  const names = given.split(',').map((name) => name.trim());
  const unknown = names.find((name) => !known.some((one) => one === name));
  if (unknown === undefined) return known.filter((one) => names.includes(one));
  throw new CliError(
    exit.usage,
    `${option}: there is no ${what} \`${oneLine(unknown)}\``,
    `${didYouMean(unknown, known)} Valid: ${known.join(', ')}`.trim(),
  );
}

/** Asks which kinds are copied: all of them, none, or one after the other. */
async function chosenKinds(
  { out }: CommandLine,
  sources: readonly ImportSource[],
  { yes }: Options,
): Promise<readonly ImportKind[]> {
  const open = importKinds.filter((kind) => countOf(sources, kind) > 0);
  if (yes || open.length === 0) return open;
  if (!out.canAsk)
    throw new CliError(
      exit.credentials,
      'there is no terminal to ask in, and nothing was copied',
      'Add --yes to copy everything, or --dry-run to list it.',
    );
  const counts = open.map((kind) => counted(sources, kind));
  const answer = await out.ask(`Copy ${counts.join(', ')}? [y]es, [n]o, [k]ind by kind: `);
  if (/^\s*y(?:es)?\s*$/i.test(answer)) return open;
  if (!/^\s*k/i.test(answer)) return [];
  const chosen: ImportKind[] = [];
  for (const kind of open)
    if (/^\s*y(?:es)?\s*$/i.test(await out.ask(`Copy ${counted(sources, kind)}? [y/N] `))) chosen.push(kind);
  return chosen;
}

function countOf(sources: readonly ImportSource[], kind: ImportKind): number {
  return sources.filter((source) => source.kind === kind).reduce((sum, { take }) => sum + take, 0);
}

function counted(sources: readonly ImportSource[], kind: ImportKind): string {
  const count = countOf(sources, kind);
  return `${count} ${kindWords[kind][count === 1 ? 0 : 1]}`;
}

type Stage = 'found' | 'done';

/** Sources, and lines about what is left out or different. */
interface Listing {
  readonly sources: readonly ImportSource[];
  readonly lines: readonly string[];
}

function linesOf(plans: readonly ImportPlan[]): readonly string[] {
  const notes = plans.flatMap((plan) => plan.notes.map((note) => `note: ${spelledLine(note)}`));
  return [...skippedLines(plans.map(({ source }) => source)), ...notes];
}

function report(line: CommandLine, listing: Listing, { json }: Options, stage: Stage): number {
  if (json) printJson(line.out, { sources: listing.sources }, 2);
  else show(line, listing, stage);
  return exit.done;
}

const takeHeads: Readonly<Record<Stage, string>> = { found: 'to copy', done: 'copied' };

/** Prints a row for each source, and its lines. */
function show({ out }: CommandLine, { sources, lines }: Listing, stage: Stage): void {
  if (sources.length === 0) {
    out.print('Nothing of other programs was found.\n');
    return;
  }
  const rows = sources.map(({ program, kind, path, found, take, exists, skip }) => [
    program,
    kind,
    ...[found, take, exists, skip.length].map(String),
    path,
  ]);
  const heads = ['program', 'kind', 'found', takeHeads[stage], 'exists', 'skipped', 'source'];
  out.print(`${columns([heads, ...rows.map((row) => row.map(spelledLine))]).join('\n')}\n`);
  out.print([...new Set(lines)].map((text) => `${text}\n`).join(''));
}

/** Names each thing that is left out. A file that cannot be read is named once, whatever it holds. */
function skippedLines(sources: readonly ImportSource[]): readonly string[] {
  const lines = sources.flatMap(({ path, skip }) =>
    skip.map(({ name, reason }) =>
      reason.startsWith(path)
        ? `skipped: ${spelledLine(reason)}`
        : `skipped: ${spelledLine(`${name} (${path}): ${reason}`)}`,
    ),
  );
  return [...new Set(lines)];
}

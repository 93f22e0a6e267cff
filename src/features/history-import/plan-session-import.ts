import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { CommandLine } from '../../kernel/console/command.js';
import {
  type Importer,
  type ImportHost,
  type ImportItem,
  type ImportPlan,
  planSource,
  skipItem,
  type SourcePlace,
} from '../../kernel/console/importer.js';
import { type ImportCandidate, idOf, importConversations, type Outcome } from './import-sessions.js';
import type { HistoryReader, Source } from './neutral-turns.js';
import { hasHistories, readerOf } from './offered-histories.js';
import { toEvents } from './to-events.js';

/** Imports conversations of other programs, as `agent sessions import` does. */
export const sessionImporter: Importer = { kind: 'sessions', plan: planSessions };

async function planSessions({ settings, programs, line }: ImportHost): Promise<readonly ImportPlan[]> {
  const plans: ImportPlan[] = [];
  for (const program of programs) {
    const reader = hasHistories(program, settings) ? await readerOf(program) : null;
    const sources = reader === null ? [] : sourcesWithin(reader, settings, line === null);
    const [first] = sources;
    if (reader === null || first === undefined) continue;
    const place = { program, kind: 'sessions', path: sharedFolder(sources), scope: 'user' } as const;
    plans.push(
      line === null ? planSource(place, sources.map(counted)) : await planProgram({ place, reader, sources }, line),
    );
  }
  return plans;
}

const maxCountMs = 30;

/** Lists where conversations lie. `isQuick`: as many as can be found while nobody waits for them. */
function sourcesWithin(reader: HistoryReader, settings: ImportHost['settings'], isQuick: boolean): readonly Source[] {
  const end = performance.now() + maxCountMs;
  const sources: Source[] = [];
  for (const source of reader.sources(settings)) {
    sources.push(source);
    if (isQuick && performance.now() > end) break;
  }
  return sources;
}

function counted({ file }: Pick<Source, 'file'>): ImportItem {
  return { name: file, state: 'take', take: () => undefined };
}

/** The conversations of one program. */
interface ProgramHistories {
  readonly place: SourcePlace;
  readonly reader: HistoryReader;
  readonly sources: readonly Source[];
}

async function planProgram({ place, reader, sources }: ProgramHistories, line: CommandLine): Promise<ImportPlan> {
  const settings = await line.settings();
  const candidates = sources.flatMap((source): readonly ImportCandidate[] => {
    const found = reader.head(source, settings);
    return found === null ? [] : [{ program: place.program, reader, found }];
  });
  const known = await knownSessions(candidates, line);
  const fresh = candidates.filter((candidate) => !known.has(candidate));
  const problems = new Map(fresh.map((candidate) => [candidate, problemOf(candidate)]));
  const wanted = fresh.filter((candidate) => problems.get(candidate) === null);
  const itemsWith = (itemOf: (candidate: ImportCandidate) => ImportItem): readonly ImportItem[] =>
    candidates.map((candidate) => {
      const name = candidate.found.file;
      if (known.has(candidate)) return { name, state: 'exists' };
      const problem = problems.get(candidate) ?? null;
      return problem === null ? itemOf(candidate) : skipItem(name, problem);
    });
  return {
    source: planSource(
      place,
      itemsWith(({ found }) => counted(found)),
    ).source,
    notes: [],
    apply: async () => {
      const outcomes = wanted.length === 0 ? [] : await importConversations(line, wanted, {});
      const byCandidate = new Map(wanted.map((candidate, index) => [candidate, outcomes[index]]));
      return planSource(
        place,
        itemsWith((candidate) => outcomeItem(candidate, byCandidate.get(candidate))),
      ).source;
    },
  };
}

/** Returns those that were imported before. The store is opened only where there is one. */
async function knownSessions(
  candidates: readonly ImportCandidate[],
  line: CommandLine,
): Promise<ReadonlySet<ImportCandidate>> {
  const { config } = await line.settings();
  if (config.store.mode !== 'remote' && !existsSync(config.files.database)) return new Set();
  return await line.withStore(async ({ store }) => {
    const known = new Set<ImportCandidate>();
    for (const candidate of candidates)
      if ((await store.session(idOf(candidate.program, candidate.found, ''))) !== null) known.add(candidate);
    return known;
  });
}

/** Reads a conversation until its first message. Returns why it cannot be imported, or null. */
function problemOf({ program, reader, found }: ImportCandidate): string | null {
  const facts = { tool: program, title: reader.title, found, sha256: '', opening: [], maxOutputBytes: 1 };
  try {
    const [first] = toEvents(reader.turns(found), facts);
    return first === undefined ? noMessages : null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

const noMessages = 'it has no messages';

function outcomeItem({ found }: ImportCandidate, outcome: Outcome | undefined): ImportItem {
  const name = found.file;
  if (outcome?.status === 'imported') return counted(found);
  if (outcome?.status === 'exists' || outcome?.status === 'changed') return { name, state: 'exists' };
  return skipItem(name, outcome?.problem ?? noMessages);
}

/** Returns the folder that all sources are in. */
function sharedFolder(sources: readonly Source[]): string {
  const folders = sources.map(({ file }) => dirname(file));
  let shared = folders[0] ?? '/';
  while (!folders.every((folder) => folder === shared || folder.startsWith(`${shared}/`)) && shared !== '/')
    shared = dirname(shared);
  return shared;
}

import { basename, dirname, join } from 'node:path';
import {
  readForeignSettings,
  recordIn,
  type SettingsFields,
  withNamedFiles,
} from '../../kernel/config/foreign-settings.js';
import { filesIn, type SearchedFolder } from '../../kernel/config/found-files.js';
import { markdownText } from '../../kernel/config/front-matter.js';
import { createFileImport, usedFolders } from '../../kernel/console/import-files.js';
import {
  type Importer,
  type ImportHost,
  type ImportItem,
  type ImportPlan,
  type ImportProgram,
  planSource,
  skipItem,
  type SourcePlace,
  unreadableSource,
} from '../../kernel/console/importer.js';
import {
  foldersOfProgram,
  isReadInPlace,
  opencodeFiles,
  type ProgramFolder,
} from '../../kernel/console/program-folders.js';
import type { Settings } from '../../kernel/console/run-settings.js';
import { readBounded } from '../../kernel/disk/bounded-file.js';
import { agentsIn, isAgentName } from './roles.js';
import {
  agentFile,
  type ForeignAgent,
  readCodexAgent,
  readMarkdownAgent,
  readOpencodeAgent,
  readOpencodeMarkdown,
  type RefusedAgent,
} from './translate-agents.js';

/** Imports sub-agents of other programs into `agents` of the user. */
export const agentImporter: Importer = { kind: 'agents', plan: (host) => Promise.resolve(planAgents(host)) };

interface AgentFiles {
  /** Below the folder of the program. */
  readonly folders: readonly string[];
  readonly ending: RegExp;
  readonly read: (text: string, fileName: string, path: string) => ForeignAgent | RefusedAgent;
}

/** Sources: the documentation of the programs on agents, read 2026-11. */
const programs: Readonly<Partial<Record<ImportProgram, AgentFiles>>> = {
  'claude-code': { folders: ['agents'], ending: /\.md$/, read: readMarkdownAgent },
  codex: {
    folders: ['agents'],
    ending: /\.toml$/,
    read: (_text, fileName, path) => readCodexAgent(readForeignSettings(path) ?? {}, fileName),
  },
  gemini: { folders: ['agents'], ending: /\.md$/, read: readMarkdownAgent },
  qwen: { folders: ['agents'], ending: /\.md$/, read: readMarkdownAgent },
  cursor: { folders: ['agents'], ending: /\.md$/, read: readMarkdownAgent },
  opencode: { folders: ['agent', 'agents'], ending: /\.md$/, read: readOpencodeMarkdown },
  vscode: { folders: ['agents', 'chatmodes', 'prompts'], ending: /\.(?:agent|chatmode)\.md$/, read: readMarkdownAgent },
};

interface AgentHost {
  readonly settings: Settings;
  readonly target: AgentImport;
}

function planAgents({ settings, programs: wanted }: ImportHost): readonly ImportPlan[] {
  const host: AgentHost = { settings, target: createAgentImport(settings) };
  return wanted.flatMap((program) => {
    const kind = programs[program];
    if (!kind) return [];
    const plans = foldersOfProgram(program, settings).flatMap((place) =>
      kind.folders.flatMap((name) => planFolder(program, kind, { ...place, folder: join(place.folder, name) }, host)),
    );
    return program === 'opencode' ? [...plans, ...planEntries(host)] : plans;
  });
}

function planFolder(
  program: ImportProgram,
  { ending, read }: AgentFiles,
  { folder, scope }: ProgramFolder,
  { settings, target }: AgentHost,
): readonly ImportPlan[] {
  const place: SearchedFolder = { folder, origin: 'user', root: null };
  const isAgent = (path: string): boolean => ending.test(path) && !/\/(?:readme|claude|agents)\.md$/i.test(path);
  const found = filesIn(place, ({ path, isFolder }) => (!isFolder && isAgent(path) ? path : null));
  const inPlace = program === 'claude-code' && (scope === 'project' || isReadInPlace(dirname(folder), settings));
  const items = found.map(({ path, name }): ImportItem => {
    if (inPlace) return { name, state: 'exists' };
    const bytes = readBounded(path, { maxBytes, longer: 'refuse', links: 'follow' });
    if (bytes.kind !== 'read') return skipItem(name, bytes.kind === 'missing' ? 'it is gone' : bytes.reason);
    const fileName = basename(path).replace(ending, '');
    return readItem(name, () => read(markdownText(bytes.bytes), fileName, path), target);
  });
  return items.length === 0 ? [] : [planSource({ program, kind: 'agents', path: folder, scope }, items)];
}

const maxBytes = 256 * 1024;

function readItem(name: string, read: () => ForeignAgent | RefusedAgent, target: AgentImport): ImportItem {
  try {
    const agent = read();
    return 'refused' in agent ? skipItem(name, agent.refused) : target.item(agent);
  } catch (error) {
    return skipItem(name, error instanceof Error ? error.message : String(error));
  }
}

/** The agents that `opencode.json` holds itself. */
function planEntries({ settings, target }: AgentHost): readonly ImportPlan[] {
  return opencodeFiles(settings).flatMap(({ path, scope }): readonly ImportPlan[] => {
    const place: SourcePlace = { program: 'opencode', kind: 'agents', path, scope };
    try {
      const entries = Object.entries(recordIn(readForeignSettings(path)?.['agent']));
      const items = entries.map(([name, entry]) =>
        readItem(name, () => readOpencodeAgent(withPrompt(recordIn(entry), dirname(path)), name), target),
      );
      return items.length === 0 ? [] : [planSource(place, items)];
    } catch (error) {
      return [unreadableSource(place, 'file', error)];
    }
  });
}

function withPrompt(entry: SettingsFields, folder: string): SettingsFields {
  const { prompt } = entry;
  return typeof prompt === 'string' ? { ...entry, prompt: withNamedFiles(prompt, folder) } : entry;
}

interface AgentImport {
  item(agent: ForeignAgent): ImportItem;
}

/** An agent is known by its name, whatever its file is called. */
function createAgentImport(settings: Settings): AgentImport {
  const files = createFileImport(settings, 'agents');
  const places = usedFolders(settings, 'agents').map((folder): SearchedFolder => ({
    folder,
    origin: 'user',
    root: null,
  }));
  const used = new Map(agentsIn(places).agents.flatMap(({ name, path }) => (path === null ? [] : [[name, path]])));
  return {
    item: (agent) => {
      const { name, description, prompt } = agent;
      if (description === null) return skipItem(name, 'it has no description');
      if (!isAgentName(name)) return skipItem(name, 'its name cannot be typed');
      const file = `${name.normalize('NFC').replaceAll(/[^\p{L}\p{M}\p{N}_.-]+/gu, '-')}.md`;
      const other = used.get(name);
      if (other !== undefined && basename(other) !== file) return otherItem(agent, prompt, other);
      return files.item({ name, file, text: agentFile(agent) });
    },
  };
}

/** An agent of the same name in another file counts as this one where the prompt is the same. */
function otherItem({ name }: ForeignAgent, prompt: string, path: string): ImportItem {
  const found = readBounded(path, { maxBytes, longer: 'refuse', links: 'follow' });
  const isSame = found.kind === 'read' && markdownText(found.bytes).includes(prompt.trim());
  return isSame ? { name, state: 'exists' } : skipItem(name, `${path} is another agent of this name`);
}

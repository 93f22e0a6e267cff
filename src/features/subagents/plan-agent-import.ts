import { basename } from 'node:path';
import {
  readForeignSettings,
  recordIn,
  type SettingsFields,
  withNamedFiles,
} from '../../kernel/config/foreign-settings.js';
import { markdownText } from '../../kernel/config/front-matter.js';
import { userFolders } from '../../kernel/config/project.js';
import { createFileImport } from '../../kernel/console/import-files.js';
import {
  type Importer,
  type ImportHost,
  type ImportItem,
  type ImportPlan,
  type ImportProgram,
  skipItem,
} from '../../kernel/console/importer.js';
import { planTextFiles, type TextFiles } from '../../kernel/console/plan-text-files.js';
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

interface AgentFiles extends Pick<TextFiles, 'folders'> {
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

function planAgents(host: ImportHost): readonly ImportPlan[] {
  const target = createAgentImport(host.settings);
  const agentItem = (name: string, agent: ForeignAgent | RefusedAgent): ImportItem =>
    'refused' in agent ? skipItem(name, agent.refused) : target.item(agent);
  const textFiles = ({ folders, ending, read }: AgentFiles): TextFiles => ({
    folders,
    accepts: (name) => ending.test(name) && !/(?:^|\/)(?:readme|claude|agents)\.md$/i.test(name),
    item: ({ name, path, text }) => agentItem(name, read(text, basename(path).replace(ending, ''), path)),
  });
  const byProgram = Object.entries(programs).map(([program, kind]) => [program, textFiles(kind)] as const);
  return planTextFiles('agents', host, Object.fromEntries(byProgram), {
    key: 'agent',
    item: (name, entry, folder) => agentItem(name, readOpencodeAgent(withPrompt(recordIn(entry), folder), name)),
  });
}

function withPrompt(entry: SettingsFields, folder: string): SettingsFields {
  const { prompt } = entry;
  return typeof prompt === 'string' ? { ...entry, prompt: withNamedFiles(prompt, folder) } : entry;
}

const maxBytes = 256 * 1024;

interface AgentImport {
  item(agent: ForeignAgent): ImportItem;
}

/** An agent is known by its name, whatever its file is called. */
function createAgentImport(settings: Settings): AgentImport {
  const files = createFileImport(settings, 'agents');
  const used = new Map(
    agentsIn(userFolders(settings, 'agents')).agents.flatMap(({ name, path }) => (path === null ? [] : [[name, path]])),
  );
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

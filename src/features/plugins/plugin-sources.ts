import type { AddedSource, Here } from '../../kernel/config/project.js';
import type { QuestionPort } from '../../kernel/console/feature.js';
import type { Notice, Settings } from '../../kernel/console/run-settings.js';
import { changedPlugin, pluginText, trustChanged } from './manage-plugins.js';
import { type InstalledPlugin, pluginPaths, readRegistry, stateOf } from './plugin-registry.js';
import { readPlugin } from './read-plugin.js';

/** Plugins that were read, by what was trusted: several parts of the program ask at a start. */
const known = new Map<string, AddedSource>();

/** Returns the plugins that are enabled and as the user trusted them. */
export function pluginSources(here: Pick<Here, 'config'>): readonly AddedSource[] {
  return readRegistry(pluginPaths(here)).plugins.flatMap((plugin) =>
    plugin.enabled ? (sourceOf(here, plugin) ?? []) : [],
  );
}

function sourceOf(here: Pick<Here, 'config'>, plugin: InstalledPlugin): AddedSource | null {
  const paths = pluginPaths(here);
  const { name, entry } = plugin;
  if (stateOf(paths, plugin).kind !== 'trusted') return null;
  const key = JSON.stringify([paths.plugin(name), plugin]);
  const before = known.get(key);
  if (before) return before;
  const { root, folders, hooks, servers } = readPlugin(paths.plugin(name), { ...entry, name });
  const source: AddedSource = {
    name,
    origin: `plugin:${name}`,
    root,
    variables: { '${CLAUDE_PLUGIN_ROOT}': root, '${CLAUDE_PLUGIN_DATA}': paths.data(name) },
    folders,
    hooks,
    servers,
  };
  known.set(key, source);
  return source;
}

/** Says which plugins are not used although they are enabled. */
export function pluginNotices(here: Pick<Here, 'config'>): readonly Notice[] {
  const paths = pluginPaths(here);
  return readRegistry(paths).plugins.flatMap((plugin): Notice[] => {
    const state = plugin.enabled ? stateOf(paths, plugin) : null;
    if (state === null || state.kind === 'trusted') return [];
    const message =
      state.kind === 'missing'
        ? `The plugin ${plugin.name} is not used: its folder is gone. Run agent plugin update ${plugin.name}.`
        : `The plugin ${plugin.name} is not used: ${state.reason}. Review it with agent plugin trust ${plugin.name}.`;
    return [{ level: 'warn', code: 'plugin', message }];
  });
}

/** Asks on the terminal about each plugin that has changed since it was trusted. */
export async function askAboutChanged(settings: Settings, openQuestion: () => Promise<QuestionPort>): Promise<void> {
  for (const plugin of readRegistry(pluginPaths(settings)).plugins.filter(({ enabled }) => enabled)) {
    const changed = changedOrNull(settings, plugin);
    if (changed === null) continue;
    const port = await openQuestion();
    port.write(`${plugin.name} has changed since you trusted it.\n${pluginText(changed)}\n`);
    await port.untilPause();
    port.write('Trust exactly this? [y/N] ');
    const answer = await port.line();
    if (answer === null) port.write('\n');
    if (/^\s*y(?:es)?\s*$/i.test(answer ?? '')) trustChanged(settings, changed);
  }
}

/** A plugin that can no longer be read is reported in the session. */
function changedOrNull(settings: Settings, plugin: InstalledPlugin): ReturnType<typeof changedPlugin> {
  try {
    return changedPlugin(settings, plugin);
  } catch {
    return null;
  }
}

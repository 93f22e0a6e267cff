// The code of plugins. It is loaded with the first use.
export {
  addPlugins,
  disablePlugin,
  enablePlugin,
  listPlugins,
  plugins,
  removePlugin,
  searchPlugins,
  trustPlugin,
  updatePlugins,
} from './manage-plugins.js';
export { askAboutChanged, pluginNotices, pluginSources } from './plugin-sources.js';

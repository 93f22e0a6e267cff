import { CliError, exit, type ReplTools, type Themes } from '../../kernel/console/command.js';
import { slashCommands } from '../../kernel/console/registration.js';
import { table } from '../../commands/table.js';
import {
  createGuards,
  createMachine,
  createModels,
  createPrinter,
  createTools,
  settingsRequest,
} from '../../commands/line-parts.js';
import type { ToolsData } from '../../kernel/core/event.js';
import type { SaveResult } from '../../kernel/core/policy.js';
import { lastTools } from '../../kernel/core/projection.js';
import type { SlashCommand } from '../../kernel/console/slash-command.js';
import { toolsEvent } from '../../app/context-files.js';
import type { Run } from '../../app/create-session.js';
import { instructionFiles } from '../../kernel/console/instruction-files.js';
import { instructionPlace } from '../../app/instructions/instruction-places.js';
import { editableInstructions } from '../../app/instructions/listed-instructions.js';
import type { Menu, MenuCommand } from '../../kernel/console/feature.js';
import { resolveModel } from '../../app/model-resolution.js';
import type { RunTools } from '../../app/open-tools.js';
import { changeOf } from '../../app/open-toolsets.js';
import type { Settings } from '../../kernel/console/run-settings.js';
import type { ReplSessions } from './current-session.js';

export type Keep = (key: string, value: string | undefined) => Promise<SaveResult>;

/** The sessions that slash commands work with. */
export type CommandSessions = Pick<ReplSessions, 'ready' | 'current' | 'title' | 'rename' | 'open'>;

/** Returns the slash commands with the parts that they work with. */
export function replCommands(
  run: Run,
  sessions: CommandSessions,
  { keep, menus, themes }: { readonly keep: Keep; readonly menus: readonly Menu[]; readonly themes: Themes },
): () => readonly SlashCommand[] {
  const { settings, options, store, tables, toolbox, policy, spend } = run;
  toolbox.parts.add(instructionFiles, (conversation) => editableInstructions(instructionPlace(settings), conversation));
  const ofProgram = slashCommands(table, {
    sessions,
    store,
    settings,
    tools: replTools(settings, toolbox, sessions),
    approval: {
      ...policy,
      plan: (on) => {
        policy.plan(on);
        offerPlanTool(run, sessions);
      },
    },
    spending: spend,
    resolveModel: (name, current) => resolveModel(settings, name, current),
    roles: run.roles,
    keep: async (key, value) => (await keep(key, value)).said,
    line: {
      out: createPrinter(),
      get request() {
        return settingsRequest(options);
      },
      machine: createMachine(() => settingsRequest(options)),
      guards: createGuards(() => Promise.resolve(settings)),
      models: createModels(options, () => Promise.resolve(settings)),
      tools: createTools(() => Promise.resolve(settings)),
    },
    tables,
    parts: toolbox.parts,
    commands: () => commands(),
    themes,
  });
  const onceReady = (command: SlashCommand): SlashCommand => ({
    ...command,
    run: async (argument, context) => {
      await sessions.ready();
      await command.run(argument, context);
      await refreshMenus(menus);
    },
  });
  const fixed = ofProgram.map(onceReady);
  const written = (): readonly SlashCommand[] => menus.flatMap((menu) => menu.commands()).map(sentCommand);
  const commands = (): readonly SlashCommand[] => [...fixed, ...written().map(onceReady)];
  return commands;
}

export async function refreshMenus(menus: readonly Menu[]): Promise<void> {
  for (const menu of menus) await menu.refresh?.();
}

/** A command in a file, or a skill: the session makes the message of it. */
function sentCommand({ name, description, argumentHint, origin }: MenuCommand): SlashCommand {
  return {
    name,
    description: `${description} (${origin})`,
    ...(argumentHint === null ? {} : { argument: argumentHint }),
    run: (argument, context) => {
      context.send(`/${name} ${argument}`.trimEnd());
      return Promise.resolve();
    },
  };
}

/** Lets the user switch tools on and off. The session records each change, because it changes its requests. */
function replTools(
  settings: Pick<Settings, 'config' | 'cwd' | 'home' | 'projects' | 'commandNames'>,
  { registry, catalogue, offer }: RunTools,
  sessions: CommandSessions,
): ReplTools {
  /** A resumed session may offer less than there is: only the tools of `added` come in. */
  const record = async (change: Partial<ToolsData['settings']> = {}, added: readonly string[] = []): Promise<void> => {
    const { session } = sessions.current();
    const last = lastTools(session.recent());
    const event = toolsEvent(settings.config, registry, { ...last?.settings, ...change });
    const tools = event.data.tools.filter(
      ({ name }) => last === null || added.includes(name) || last.tools.some((tool) => tool.name === name),
    );
    await session.append({
      ...event,
      content: tools.map(({ name }) => name).join(' '),
      data: { ...event.data, tools },
    });
  };
  return {
    registry,
    effort: () => (lastTools(sessions.current().session.recent())?.settings ?? settings.config.request).effort ?? null,
    think: (effort) => record({ effort }),
    reload: async () => {
      const { before, now } = await catalogue.reload();
      for (const name of before) registry.unregister(name);
      await offer(now);
      await record({}, now);
    },
    get sets() {
      return catalogue.sets;
    },
    change: async (choice) => {
      const { plus, minus } = await changeOf(catalogue, choice);
      if (minus === null)
        throw new CliError(
          exit.usage,
          `\`${choice}\` is neither on nor off`,
          'Write for example /tools +web or /tools -bash.',
        );
      await offer(plus);
      for (const name of minus) registry.unregister(name);
      await record({}, plus);
    },
  };
}

const planToolName = 'propose_plan';

/** Offers the tool that ends plan mode, once plan mode begins: a resumed session may be without it. What the user has
 * switched off stays off. */
export function offerPlanTool(
  { policy, options: { tools: chosen }, settings, toolbox }: Run,
  sessions: CommandSessions,
): void {
  if (!policy.planning() || chosen === false) return;
  if (typeof chosen === 'string' && !/^[+]/.test(chosen.trim())) return;
  const offer = async (): Promise<void> => {
    await sessions.ready();
    const last = lastTools(sessions.current().session.recent());
    if (toolbox.registry.get(planToolName) && last === null) return;
    if (last?.tools.some(({ name }) => name === planToolName)) return;
    await toolbox.offer([planToolName]);
    if (last !== null && toolbox.registry.get(planToolName))
      await replTools(settings, toolbox, sessions).change(`+${planToolName}`);
  };
  void offer().catch((error: unknown) => {
    settings.log({ at: 'plan mode', message: 'propose_plan is not offered', error: String(error) });
  });
}

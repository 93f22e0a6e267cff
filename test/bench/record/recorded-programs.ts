import type { Answer, ScriptedModels } from './scripted-models.js';

export type Call = NonNullable<Answer['calls']>[number];

/** One line typed into a program once its output holds `after`. */
export interface Line {
  readonly after: string;
  /** Null types nothing: it waits. */
  readonly type: string | null;
}

export interface Bench {
  readonly models: ScriptedModels;
  readonly start: (args: readonly string[], lines?: readonly Line[]) => Promise<string>;
  /** The model plays one half of the conversation that every program has. */
  readonly play: (part: 'first' | 'second') => void;
}

export interface Program {
  readonly bin: string;
  /** Its folder in PEERS_DIR where that is not the name of the recording. */
  readonly folder?: string;
  /** Files of its home before its first start. */
  readonly files: (port: number) => Readonly<Record<string, string | object>>;
  readonly env: (port: number) => Readonly<Record<string, string>>;
  readonly shell: (command: string) => Call;
  readonly read: (path: string) => Call;
  readonly run: (bench: Bench) => Promise<void>;
  /** Folders of its home that are kept. */
  readonly keep: readonly string[];
}

const firstAsk = 'How do we greet our guests? Grüße, 世界 👋';
const secondAsk = 'And which greeting is the second?';
const cwd = '/home/ann/shop';

const claudeCode: Program = {
  bin: 'claude',
  folder: 'claude',
  files: () => ({
    '.claude.json': {
      hasCompletedOnboarding: true,
      customApiKeyResponses: { approved: ['dummy-key-for-recordings'], rejected: [] },
      bypassPermissionsModeAccepted: true,
      projects: { [cwd]: { hasTrustDialogAccepted: true, hasCompletedProjectOnboarding: true, allowedTools: [] } },
    },
    '.claude/settings.json': { skipDangerousModePermissionPrompt: true },
  }),
  env: (port) => ({
    ANTHROPIC_BASE_URL: `http://127.0.0.1:${port}`,
    ANTHROPIC_API_KEY: 'sk-ant-dummy-key-for-recordings',
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    DISABLE_AUTOUPDATER: '1',
    DISABLE_TELEMETRY: '1',
    IS_SANDBOX: '1',
  }),
  shell: (command) => ({ name: 'Bash', args: { command, description: 'Runs it' } }),
  read: (path) => ({ name: 'Read', args: { file_path: path } }),
  async run({ models, start, play }) {
    const free = '--dangerously-skip-permissions';
    const session = (digit: number): string => `6f1c1c1e-0000-4000-8000-00000000000${digit}`;
    play('first');
    await start(['-p', firstAsk, free, '--session-id', session(1)]);
    play('second');
    await start(['-p', secondAsk, free, '--resume', session(1)]);
    const task = { description: 'Count', prompt: 'Count the lines of notes.md', subagent_type: 'general-purpose' };
    models.play([
      { text: 'A helper counts.', calls: [{ name: 'Agent', args: task }] },
      { calls: [this.shell('wc -l notes.md')] },
      { text: 'Four lines.' },
      { text: 'The notes have four lines.' },
    ]);
    await start(['-p', 'How long are the notes?', free, '--session-id', session(2)]);
    models.play([], '<summary>Ann asked how long the notes are: four lines.</summary>');
    await start(['-p', '/compact', free, '--resume', session(2)]);
    models.play([{ text: 'Still four.' }]);
    await start(['-p', 'And now?', free, '--resume', session(2)]);
  },
  keep: ['.claude/projects'],
};

const codex: Program = {
  bin: 'codex',
  files: (port) => ({
    '.codex/config.toml': [
      'model = "gpt-5.2-codex"',
      'model_provider = "scripted"',
      'approval_policy = "never"',
      'sandbox_mode = "danger-full-access"',
      'check_for_update_on_startup = false',
      '[model_providers.scripted]',
      'name = "scripted"',
      `base_url = "http://127.0.0.1:${port}/v1"`,
      'env_key = "SCRIPTED_KEY"',
      'wire_api = "responses"',
      '[analytics]',
      'enabled = false',
      `[projects."${cwd}"]`,
      'trust_level = "trusted"',
      '',
    ].join('\n'),
  }),
  env: () => ({ SCRIPTED_KEY: 'dummy' }),
  shell: (command) => ({ name: 'exec_command', args: { cmd: command } }),
  read: (path) => ({ name: 'exec_command', args: { cmd: `cat ${path}` } }),
  async run({ models, start, play }) {
    play('first');
    await start(['exec', firstAsk]);
    play('second');
    await start(['exec', 'resume', '--last', secondAsk]);
    models.play([{ calls: [this.shell('wc -l notes.md')] }, { text: 'Four lines.' }]);
    await start(['exec', 'How long are the notes?']);
    models.play([{ text: 'Still four.' }], 'Ann asked how long the notes are: four lines.');
    await start(['exec', 'resume', '--last', '-c', 'model_auto_compact_token_limit=100', 'And now?']);
  },
  keep: ['.codex/sessions'],
};

const pi: Program = {
  bin: 'pi',
  files: (port) => ({
    '.pi/agent/models.json': {
      providers: {
        scripted: {
          baseUrl: `http://127.0.0.1:${port}/v1`,
          api: 'openai-completions',
          apiKey: 'dummy',
          models: [{ id: 'scripted', contextWindow: 200_000, maxTokens: 32_000 }],
        },
      },
    },
    '.pi/agent/settings.json': {
      defaultProvider: 'scripted',
      defaultModel: 'scripted',
      compaction: { enabled: true, reserveTokens: 1000, keepRecentTokens: 10 },
    },
  }),
  env: () => ({ PI_OFFLINE: '1', PI_SKIP_VERSION_CHECK: '1', PI_TELEMETRY: '0' }),
  shell: (command) => ({ name: 'bash', args: { command } }),
  read: (path) => ({ name: 'read', args: { path } }),
  async run({ models, start, play }) {
    play('first');
    await start(['-p', firstAsk]);
    play('second');
    await start(['-p', secondAsk, '-c']);
    models.play(
      [{ calls: [this.shell('wc -l notes.md')] }, { text: 'Four lines.' }, { text: 'Still four.' }, { text: 'Four.' }],
      'Ann asked how long the notes are: four lines.',
    );
    const line = (after: string, command: object): Line => ({ after, type: JSON.stringify(command) });
    await start(
      ['--mode', 'rpc'],
      [
        line('', { type: 'bash', command: 'echo by hand' }),
        line('"command":"bash"', { type: 'prompt', message: 'How long are the notes?' }),
        line('"type":"agent_end"', { type: 'prompt', message: 'And now?' }),
        line('"type":"agent_end"', { type: 'compact' }),
        line('"command":"compact"', { type: 'prompt', message: 'Once more?' }),
        { after: '"type":"agent_end"', type: null },
      ],
    );
  },
  keep: ['.pi/agent/sessions'],
};

const geminiOf = (folder: string): Program => ({
  bin: 'gemini',
  folder,
  files: () => ({
    '.gemini/settings.json': {
      general: { enableAutoUpdate: false, disableAutoUpdate: true },
      security: { auth: { selectedType: 'gemini-api-key' }, folderTrust: { enabled: false } },
      privacy: { usageStatisticsEnabled: false },
      telemetry: { enabled: false },
      model: { name: 'gemini-2.5-pro' },
    },
  }),
  env: (port) => ({ GEMINI_API_KEY: 'dummy', GOOGLE_GEMINI_BASE_URL: `http://127.0.0.1:${port}` }),
  shell: (command) => ({ name: 'run_shell_command', args: { command, description: 'Runs it' } }),
  read: (path) => ({ name: 'read_file', args: { file_path: path } }),
  async run({ start, play }) {
    play('first');
    await start(['-p', firstAsk, '--yolo']);
    play('second');
    await start(['-p', secondAsk, '--yolo', '--resume', 'latest']);
  },
  keep: ['.gemini/tmp', '.gemini/projects.json'],
});

const opencodeOf = (folder: string): Program => ({
  bin: 'opencode',
  folder,
  files: (port) => ({
    '.config/opencode/opencode.json': {
      autoupdate: false,
      share: 'disabled',
      model: 'scripted/scripted',
      small_model: 'scripted/scripted',
      provider: {
        scripted: {
          npm: '@ai-sdk/openai-compatible',
          name: 'scripted',
          options: { baseURL: `http://127.0.0.1:${port}/v1`, apiKey: 'dummy' },
          models: { scripted: { name: 'scripted', limit: { context: 1_000_000, output: 32_000 } } },
        },
      },
      permission: 'allow',
    },
  }),
  env: () => ({
    OPENCODE_DISABLE_AUTOUPDATE: '1',
    OPENCODE_DISABLE_MODELS_FETCH: '1',
    OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
    OPENCODE_DISABLE_SHARE: '1',
  }),
  shell: (command) => ({ name: 'bash', args: { command, description: 'Runs it' } }),
  read: (path) => ({ name: 'read', args: { filePath: path } }),
  async run({ start, play }) {
    play('first');
    await start(['run', firstAsk]);
    play('second');
    await start(['run', '-c', secondAsk]);
  },
  keep: ['.local/share/opencode'],
});

const qwen: Program = {
  bin: 'qwen',
  files: () => ({
    '.qwen/settings.json': {
      general: { enableAutoUpdate: false, disableAutoUpdate: true },
      security: { auth: { selectedType: 'openai' }, folderTrust: { enabled: false } },
      privacy: { usageStatisticsEnabled: false },
      telemetry: { enabled: false },
      model: { name: 'scripted' },
    },
  }),
  env: (port) => ({
    OPENAI_API_KEY: 'dummy',
    OPENAI_BASE_URL: `http://127.0.0.1:${port}/v1`,
    OPENAI_MODEL: 'scripted',
  }),
  shell: (command) => ({ name: 'run_shell_command', args: { command, description: 'Runs it', is_background: false } }),
  read: (path) => ({ name: 'read_file', args: { file_path: path } }),
  async run({ start, play }) {
    play('first');
    await start(['-p', firstAsk, '--yolo']);
    play('second');
    await start(['-p', secondAsk, '--yolo', '-c']);
  },
  keep: ['.qwen/projects'],
};

/** By the name of the folder in fixtures/histories. */
export const programs: Readonly<Record<string, Program>> = {
  'claude-code': claudeCode,
  codex,
  pi,
  gemini: geminiOf('gemini'),
  'gemini-0.30': geminiOf('gemini-0.30'),
  opencode: opencodeOf('opencode'),
  'opencode-1.1': opencodeOf('opencode-1.1'),
  qwen,
};

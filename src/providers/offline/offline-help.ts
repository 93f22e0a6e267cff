/** What the embedded provider is, what it understands, and how to connect a model. */
export const offlineHelp = `I am the offline provider built into this program: no language model and no network, only a few fixed phrases. I understand

- \`list **/*.ts\`, \`find *.md in docs\`, \`list python files\`
- \`read README.md\`, \`show me package.json\`
- \`grep TODO in src\`, \`search for "main" in src\`
- \`run npm test\`; a command that I do not know by its name in backticks behind \`run\`
- \`write hello to notes.txt\`, \`write "two words" to notes.txt\`, \`replace hello with goodbye in notes.txt\`

and several of them joined with \`then\`; a line that is anything more than that I leave alone. To connect a model, set a key and start again:

    export OPENROUTER_API_KEY=…
    agent

or start Ollama or LM Studio on this machine: \`agent --model ollama/<model>\`. \`agent providers\` lists the other providers, their keys and what is set.`;

/** Said after the first answer of a session that did something, so that nobody takes this for a model. */
export const offlineNote =
  'This was the built-in offline provider, not a language model; set OPENROUTER_API_KEY (or the key of another provider) to connect one.';

/** What to do where nothing answers because no model is connected. */
export const connectHint =
  'Set the key of a provider (OPENROUTER_API_KEY, ANTHROPIC_API_KEY, …), start Ollama, or name a model with -m; `agent providers` shows what is set, and -m offline asks for the offline provider.';

/** The values of environment variables that hold keys: they are masked wherever this program writes, and no tool's process gets them. */
export function keySecrets(env: NodeJS.ProcessEnv): readonly string[] {
  return secretVariables(env).map((name) => env[name] ?? '').filter((value) => value.length >= 8);
}

/** The names of variables that hold provider keys. */
export function secretVariables(env: NodeJS.ProcessEnv): readonly string[] {
  return Object.keys(env).filter((name) => /^(OPENAI|ANTHROPIC|OPENROUTER|DEEPSEEK|MOONSHOT|GEMINI|GOOGLE|XAI|MISTRAL|GROQ|OLLAMA|LMSTUDIO)_API_KEY$/.test(name));
}

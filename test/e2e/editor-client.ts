import { type ChildProcess, spawn } from 'node:child_process';
import { Readable, Writable } from 'node:stream';
import {
  client,
  type ClientContext,
  type CreateElicitationRequest,
  methods,
  ndJsonStream,
  type PromptResponse,
  type RequestPermissionRequest,
  type SessionUpdate,
} from '@agentclientprotocol/sdk';
import { onTestFinished } from 'vitest';
import { binary, type Place } from './program.js';

/** A question that the editor shows. `isOver`: the agent has cancelled it. */
export interface ShownQuestion {
  readonly params: RequestPermissionRequest;
  readonly answer: (optionId: string) => void;
  isOver: boolean;
}

/** A form that the editor shows. */
export interface ShownForm {
  readonly params: CreateElicitationRequest;
  readonly fill: (content: Readonly<Record<string, string>>) => void;
  isOver: boolean;
}

/** An editor, as far as `agent acp` sees one. */
export class EditorProcess {
  readonly child: ChildProcess;
  readonly agent: ClientContext;
  readonly updates: SessionUpdate[] = [];
  readonly questions: ShownQuestion[] = [];
  readonly forms: ShownForm[] = [];
  readonly #looks = new Set<() => void>();

  private constructor(at: Place, args: readonly string[]) {
    this.child = spawn(process.execPath, [binary, ...args, 'acp'], {
      cwd: at.work,
      env: at.env,
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const { stdin, stdout } = this.child;
    if (!stdin || !stdout) throw new Error('agent acp has no streams');
    stdin.on('error', () => undefined);
    onTestFinished(() => {
      this.kill();
    });
    const app = client({ name: 'test' })
      .onNotification(methods.client.session.update, ({ params }) => {
        this.updates.push(params.update);
        this.#look();
      })
      .onRequest(methods.client.session.requestPermission, ({ params, signal }) => {
        const chosen = new Promise<string | null>((resolve) => {
          const question: ShownQuestion = { params, answer: resolve, isOver: false };
          signal.addEventListener('abort', () => {
            question.isOver = true;
            resolve(null);
            this.#look();
          });
          this.questions.push(question);
        });
        this.#look();
        return chosen.then((optionId) => ({
          outcome: optionId === null ? { outcome: 'cancelled' as const } : { outcome: 'selected' as const, optionId },
        }));
      })
      .onRequest(methods.client.elicitation.create, ({ params, signal }) => {
        const filled = new Promise<Readonly<Record<string, string>> | null>((resolve) => {
          const form: ShownForm = { params, fill: resolve, isOver: false };
          signal.addEventListener('abort', () => {
            form.isOver = true;
            resolve(null);
            this.#look();
          });
          this.forms.push(form);
        });
        this.#look();
        return filled.then((content) =>
          content === null ? { action: 'cancel' as const } : { action: 'accept' as const, content },
        );
      });
    const streams = ndJsonStream(Writable.toWeb(stdin), Readable.toWeb(stdout) as ReadableStream<Uint8Array>);
    this.agent = app.connect(streams).agent;
  }

  static async start(at: Place, args: readonly string[] = []): Promise<EditorProcess> {
    const editor = new EditorProcess(at, args);
    const clientCapabilities = { elicitation: { form: {} } };
    await editor.agent.request(methods.agent.initialize, { protocolVersion: 1, clientCapabilities });
    return editor;
  }

  async load(sessionId: string, cwd: string) {
    return await this.agent.request(methods.agent.session.load, { sessionId, cwd, mcpServers: [] });
  }

  async prompt(sessionId: string, text: string): Promise<PromptResponse> {
    return await this.agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: 'text', text }] });
  }

  async cancel(sessionId: string): Promise<void> {
    await this.agent.notify(methods.agent.session.cancel, { sessionId });
  }

  /** Returns the texts of these updates, each chunk as it came. */
  texts(kind: 'user_message_chunk' | 'agent_message_chunk' | 'agent_thought_chunk'): readonly string[] {
    return this.updates.flatMap((update) =>
      update.sessionUpdate === kind && update.content.type === 'text' ? [update.content.text] : [],
    );
  }

  said(): string {
    return this.texts('agent_message_chunk').join('');
  }

  /** Resolves once this is so. */
  async until(isSo: (editor: EditorProcess) => boolean): Promise<void> {
    await new Promise<void>((resolve) => {
      const look = (): void => {
        if (!isSo(this)) return;
        this.#looks.delete(look);
        resolve();
      };
      this.#looks.add(look);
      look();
    });
  }

  kill(): void {
    this.child.kill('SIGKILL');
  }

  #look(): void {
    for (const look of this.#looks) look();
  }
}

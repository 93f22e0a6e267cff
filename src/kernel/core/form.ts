import type { AnswerSource } from './event.js';
import type { Json } from './json.js';

/** Questions that a tool or a server puts to the user: what `ask_user` asks, what an MCP server wants to know
 * (elicitation), whether a plan is to be carried out. */
export interface Form {
  /** The source of the form, for the user: `the model`, `the server github`. Text from a server is not trusted. */
  readonly from: string;
  /** Shown above the question in place of who asks: the user opened the form. */
  readonly title?: string;
  /** The subject of the form; may have several lines. */
  readonly message: string;
  /** The message is Markdown. A screen renders it, others show it as it is. */
  readonly isMarkdown?: true;
  /** It waits for an answer however short the time for approvals is. */
  readonly isUntimed?: true;
  readonly fields: readonly FormField[];
}

/** One question. Its answer has the type of its `kind`: a choice is answered with values of its options, or with any
 * text if `free` is set. */
export interface FormField {
  readonly name: string;
  readonly question: string;
  /** One or two words that stand for the question. */
  readonly label?: string;
  readonly kind: 'choice' | 'text' | 'number' | 'integer' | 'boolean';
  readonly options?: readonly FormOption[];
  /** Any number of options may be chosen. */
  readonly several?: true;
  readonly free?: true;
  readonly required: boolean;
  readonly preset?: FormValue;
  /** Returns what is wrong with an answer, as a sentence; null if it is valid. Absent: the kind is the only check. */
  readonly check?: (value: FormValue) => string | null;
}

export interface FormOption {
  readonly value: string;
  readonly label: string;
  readonly about?: string;
  /** A letter that chooses it. */
  readonly key?: string;
}

export type FormValue = string | number | boolean | readonly string[];

export type FormAnswer = FormReply & {
  /** The kind of screen that answered; absent: a terminal with the session on it. */
  readonly source?: AnswerSource;
};

/** `declined`: the user does not want to answer. `cancelled`: they were not there, or the turn was ended. `late`: the user
 * did not answer within this time. */
type FormReply =
  | { readonly answer: 'filled'; readonly values: Readonly<Record<string, FormValue>> }
  | { readonly answer: 'declined' | 'cancelled' }
  | { readonly answer: 'late'; readonly afterMs: number };

const formAnswers: readonly string[] = [
  'filled',
  'declined',
  'cancelled',
  'late',
] satisfies readonly FormAnswer['answer'][];

export function isFormAnswer(answer: { readonly answer: string }): answer is FormAnswer {
  return formAnswers.includes(answer.answer);
}

/** A question of an MCP server for the user. */
export interface ServerQuestion {
  readonly server: string;
  readonly message: string;
  readonly mode: 'form' | 'url';
  readonly url: string | null;
  readonly schema: Json | null;
}

/** The answer of a hook to such a question. */
export interface HookedForm {
  readonly action: 'accept' | 'decline' | 'cancel';
  readonly content: Readonly<Record<string, unknown>>;
}

import { Lexer, Tokenizer, type TokensList } from 'marked';

/** A rule of marked, tried only on a text that `first` fits, without which it cannot fit. V8 compiles a rule when it is
 * first tried, and takes 3 to 8 ms for each of these: that was most of what a short answer cost. */
class GuardedRule extends RegExp {
  readonly #first: RegExp;

  constructor(rule: RegExp, first: RegExp) {
    super(rule);
    this.#first = first;
  }

  override exec(text: string): RegExpExecArray | null {
    return this.#first.test(text) ? super.exec(text) : null;
  }
}

/** A paragraph is its first line, where the text ends after that or an empty line follows. */
class ParagraphRule extends RegExp {
  override exec(text: string): RegExpExecArray | null {
    return /^([^\n]+)(?=\n?$|\n\n)/.exec(text) ?? super.exec(text);
  }
}

type Rules = Tokenizer['rules'];

let rules: Rules | null = null;

function withGuards({ block, ...others }: Rules): Rules {
  return {
    ...others,
    block: {
      ...block,
      blockquote: new GuardedRule(block.blockquote, /^ {0,3}>/),
      html: new GuardedRule(block.html, /^ {0,3}</),
      table: new GuardedRule(block.table, /^ *[^\n ].*\n {0,3}(?:\| *)?:?-/),
      lheading: new GuardedRule(block.lheading, /^(?:.|\n(?!\s*?\n))+?\n {0,3}(?:=+|-+)[ \t]*(?:\n|$)/),
      paragraph: new ParagraphRule(block.paragraph),
    },
  };
}

/** The blocks of a Markdown text, as `lexer` of marked gives them. */
export function lexMarkdown(text: string): TokensList {
  const tokenizer = new Tokenizer();
  const lexer = new Lexer({ gfm: true, tokenizer });
  tokenizer.rules = rules ??= withGuards(tokenizer.rules);
  return lexer.lex(text);
}

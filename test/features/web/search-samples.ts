import type { SearchServiceName } from '../../../src/features/web/search-engines.js';

/** The same page twice, one of them with a tracking parameter, and another, as each service sends them. */
export const url = 'https://a.example/page';
const again = `${url}?utm_source=x#top`;
export const other = 'http://b.example/?id=1';
export const results: Readonly<Record<SearchServiceName, unknown>> = {
  searxng: {
    results: [
      { url, title: 'A', content: 'one' },
      { url: again, title: 'A again', content: '' },
      { url: other, title: 'B', content: 'two' },
    ],
  },
  brave: {
    type: 'search',
    web: {
      results: [
        { url, title: 'A', description: '<strong>o</strong>ne' },
        { url: again, title: 'A again' },
        { url: other, title: 'B', description: 'two' },
      ],
    },
  },
  tavily: {
    results: [
      { url, title: 'A', content: 'one' },
      { url: again, title: 'A again', content: '' },
      { url: other, title: 'B', content: 'two' },
    ],
  },
  exa: {
    results: [
      { url, title: 'A', highlights: ['one'] },
      { url: again, title: 'A again' },
      { url: other, title: 'B', highlights: ['two'] },
    ],
  },
  serpapi: {
    organic_results: [
      { link: url, title: 'A', snippet: 'one' },
      { link: again, title: 'A again' },
      { link: other, title: 'B', snippet: 'two' },
    ],
  },
  duckduckgo: [
    '<div class="result result--ad"><a class="result__a" href="https://duckduckgo.com/y.js?ad_domain=x">Ad</a></div>',
    ...[
      [url, '<b>A</b>', 'one'],
      [again, 'A again', ''],
      [other, 'B', 'two'],
    ].map(
      ([to = '', title, text]) =>
        `<h2><a rel="nofollow" class="result__a" href="//duckduckgo.com/l/?uddg=${encodeURIComponent(to)}&amp;rut=9">${title}</a></h2>` +
        `<a class="result__snippet" href="//duckduckgo.com/l/?uddg=x">${text}</a>`,
    ),
  ].join('\n'),
};

export const nothing: Readonly<Record<SearchServiceName, unknown>> = {
  searxng: { results: [] },
  brave: { type: 'search' },
  tavily: { results: [] },
  exa: { results: [] },
  serpapi: { error: "Google hasn't returned any results for this query." },
  duckduckgo: '<div class="no-results">No results.</div>',
};

export const cited = 'https://bread.example/oven';
export const said = 'Bake at 230 degrees.';

/** The answers of the providers, each as its documents show it. */
export const answers: Readonly<Record<string, object>> = {
  openai: {
    output: [
      {
        type: 'web_search_call',
        status: 'completed',
        action: {
          type: 'search',
          query: 'x',
          sources: [
            { type: 'url', url: cited },
            { type: 'url', url: 'https://b.example/' },
          ],
        },
      },
      {
        type: 'message',
        content: [
          {
            type: 'output_text',
            text: `- ${said} ([bread.example](${cited}?utm_source=openai))`,
            annotations: [
              {
                type: 'url_citation',
                url: `${cited}?utm_source=openai`,
                title: 'Oven',
                start_index: 23,
                end_index: 90,
              },
            ],
          },
        ],
      },
    ],
    usage: { input_tokens: 1000, input_tokens_details: { cached_tokens: 200 }, output_tokens: 50 },
  },
  anthropic: {
    stop_reason: 'end_turn',
    content: [
      { type: 'server_tool_use', id: 's1', name: 'web_search', input: { query: 'x' } },
      {
        type: 'web_search_tool_result',
        tool_use_id: 's1',
        content: [
          { type: 'web_search_result', url: cited, title: 'Oven', encrypted_content: 'sealed', page_age: null },
          { type: 'web_search_result', url: 'https://b.example/', title: 'B', encrypted_content: 'sealed' },
        ],
      },
      {
        type: 'text',
        text: 'x',
        citations: [
          { type: 'web_search_result_location', url: cited, title: 'Oven', cited_text: said, encrypted_index: 'i' },
        ],
      },
    ],
    usage: {
      input_tokens: 800,
      cache_read_input_tokens: 200,
      output_tokens: 50,
      server_tool_use: { web_search_requests: 1 },
    },
  },
  google: {
    candidates: [
      {
        content: { parts: [{ text: said }] },
        groundingMetadata: {
          webSearchQueries: ['x'],
          groundingChunks: [{ web: { uri: cited, title: 'Oven' } }, { web: { uri: 'https://b.example/', title: 'B' } }],
          groundingSupports: [{ segment: { text: said }, groundingChunkIndices: [0] }],
        },
      },
    ],
    usageMetadata: {
      promptTokenCount: 900,
      toolUsePromptTokenCount: 100,
      cachedContentTokenCount: 200,
      candidatesTokenCount: 20,
      thoughtsTokenCount: 30,
    },
  },
  openrouter: {
    choices: [
      {
        message: {
          content: said,
          annotations: [
            { type: 'url_citation', url_citation: { url: cited, title: 'Oven', content: said } },
            { type: 'url_citation', url_citation: { url: 'https://b.example/', title: 'B', content: '' } },
          ],
        },
      },
    ],
    usage: {
      prompt_tokens: 1000,
      prompt_tokens_details: { cached_tokens: 200 },
      completion_tokens: 50,
      cost: 0.0123,
      server_tool_use: { web_search_requests: 1 },
    },
  },
};

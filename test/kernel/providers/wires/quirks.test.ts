import { readdirSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import type { Json } from '../../../../src/kernel/core/json.js';
import { createAnswerReader } from '../../../../src/kernel/providers/http/answer-reader.js';
import type { Conversation } from '../../../../src/kernel/core/projection.js';
import { createTextProtocol } from '../../../../src/kernel/providers/text/protocol.js';
import type { Wire } from '../../../../src/kernel/providers/wires/wire.js';
import { decode, type Decoded, fold, wires } from './recordings.js';

const fixtures = pathToFileURL('fixtures/');

const glob = { id: 'call_a', name: 'glob', arguments: '{"pattern":"*"}' };
const split = { usage: { usage: { input: 40, cacheRead: 60, cacheWrite: 0, output: 7 } } };
const plain = { usage: { usage: { input: 100, cacheRead: 0, cacheWrite: 0, output: 7 } } };
const anthropicUsage = { usage: { usage: { input: 40, cacheRead: 60, cacheWrite: 5, output: 7 } } };
const incomplete = { calls: [], stop: null, fault: { fault: { code: 'stream_incomplete' }, retryable: true } };
const failed = (code: string, retryable: boolean): object => ({
  calls: [],
  stop: null,
  fault: { fault: { code }, retryable },
});
const reasoningItem = {
  id: 'rs_1',
  type: 'reasoning',
  summary: [{ type: 'summary_text', text: 'Look first.' }],
  encrypted_content: 'gAAA==',
};
const search = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'x' } };
const summaryItem = {
  ...reasoningItem,
  summary: [
    { type: 'summary_text', text: 'Look.' },
    { type: 'summary_text', text: 'Answer.' },
  ],
};
const googleSignature = { extra_content: { google: { thought_signature: 'SIG==' } } };
const signedMetadata = {
  type: 'message_fields',
  fields: { provider_metadata: { anthropic: { signature: 'EqQB==' } } },
};

type Case = readonly [wire: 'chat' | 'messages' | 'responses' | 'text', want: object];
const oneCall: Case = ['chat', { calls: [glob], stop: 'tool', fault: null }];
const textCall = { ...glob, id: '' };
const oneTextCall: Case = ['text', { text: '', calls: [textCall], stop: 'tool', fault: null }];
const typedTextCall: Case = [
  'text',
  { text: '', calls: [{ id: '', name: 'file_read', arguments: '{"path":"10","limit":5}' }], stop: 'tool' },
];
const oneMessagesCall: Case = ['messages', { calls: [{ ...glob, id: 'toolu_1' }], stop: 'tool', fault: null }];

/** One file per quirk, and its expected decoding. */
const cases: Readonly<Record<string, Case>> = {
  'openai/chat-text.sse': ['chat', { text: 'Hello 😀', stop: 'stop', fault: null, ...split }],
  'openai/chat-parallel-calls.sse': [
    'chat',
    {
      calls: [
        { ...glob, arguments: '{"pattern":"*.ts"}' },
        { id: 'call_b', name: 'grep', arguments: '{"pattern":"TODO"}' },
      ],
      stop: 'tool',
      usage: null,
    },
  ],
  'openai/chat-function-call.sse': ['chat', { calls: [{ ...glob, id: '' }], stop: 'tool' }],
  'openai/chat-refusal.sse': ['chat', { text: 'I cannot help.', stop: 'refusal' }],
  'openai/chat-content-filter.sse': ['chat', { text: 'Half', stop: 'content_filter' }],
  'openai/chat-length-in-call.sse': [
    'chat',
    { calls: [{ id: 'call_a', name: 'bash', arguments: '{"command":"rm' }], stop: 'length' },
  ],
  'openai/chat-split-surrogate.sse': ['chat', { text: 'a😀b\ufffd', stop: 'stop' }],
  'openai/chat-broken-event.sse': ['chat', { text: 'Hello', ...incomplete }],
  'openai/chat-no-finish.sse': ['chat', { text: 'Hel', ...incomplete }],
  'openai/chat-done-without-finish.sse': ['chat', { text: 'Hel', ...incomplete }],
  'openai/responses-reasoning-and-call.sse': [
    'responses',
    { text: 'Looking.', reasoning: 'Look first.', calls: [glob], stop: 'tool', kept: [reasoningItem], ...split },
  ],
  'openai/responses-interleaved.sse': [
    'responses',
    {
      calls: [glob, { ...glob, id: 'call_b' }],
      stop: 'tool',
      kept: [
        reasoningItem,
        { type: 'layout_call' },
        { ...reasoningItem, id: 'rs_2', encrypted_content: 'gBBB==' },
        { type: 'layout_call' },
      ],
    },
  ],
  'openai/responses-server-tools.sse': [
    'responses',
    { text: 'Looking.', calls: [], stop: 'stop', kept: [{ type: 'web_search_call' }] },
  ],
  'openai/responses-refusal.sse': ['responses', { text: 'No.', stop: 'refusal' }],
  'openai/responses-incomplete.sse': [
    'responses',
    { calls: [{ ...glob, arguments: '{"pat' }], stop: 'length', usage: null },
  ],
  'openai/responses-filtered.sse': ['responses', { text: 'Half', stop: 'content_filter' }],
  'openai/responses-failed.sse': ['responses', failed('network', true)],
  'openai/responses-cancelled.sse': ['responses', failed('network', true)],
  'openai/responses-error-event.sse': ['responses', failed('rate_limited', true)],
  'openai/responses-cut.sse': ['responses', incomplete],
  'openai/responses-only-completed.sse': [
    'responses',
    { text: 'Looking.', reasoning: 'Look first.', calls: [glob], stop: 'tool', kept: [reasoningItem] },
  ],
  'anthropic/thinking-text-calls.sse': [
    'messages',
    {
      text: 'Looking.',
      reasoning: 'Let me look.',
      stop: 'tool',
      kept: [{ type: 'thinking', thinking: 'Let me look.', signature: 'EqQB==' }],
      calls: [
        { id: 'toolu_1', name: 'glob', arguments: '{"pattern":"*.ts"}' },
        { id: 'toolu_2', name: 'bash', arguments: '{}' },
      ],
      ...anthropicUsage,
    },
  ],
  'anthropic/interleaved-thinking.sse': [
    'messages',
    {
      stop: 'tool',
      kept: [
        { type: 'thinking', thinking: 'One.', signature: 'S1==' },
        { type: 'layout_call' },
        { type: 'redacted_thinking', data: 'EmwKAh==' },
        { type: 'layout_call' },
      ],
    },
  ],
  'anthropic/server-tools.sse': [
    'messages',
    {
      text: 'Searching.Found it.',
      calls: [],
      stop: 'stop',
      kept: [
        { type: 'layout_text', units: 10 },
        search,
        { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1' },
        { type: 'layout_text', units: 9 },
      ],
    },
  ],
  'anthropic/unanswered-server-tool.sse': [
    'messages',
    { text: 'Searching.', calls: [], stop: 'pause', kept: [{ type: 'layout_text' }, search] },
  ],
  'anthropic/unknown-events.sse': ['messages', incomplete],
  'anthropic/no-message-stop.sse': ['messages', { text: 'Hello', stop: 'stop', fault: null, ...anthropicUsage }],
  'anthropic/error-in-stream.sse': ['messages', { text: 'par', ...failed('network', true) }],
  'anthropic/cut-in-call.sse': ['messages', incomplete],
  'anthropic/max-tokens-in-call.sse': [
    'messages',
    { calls: [{ id: 'toolu_1', name: 'bash', arguments: '{"command":"ec' }], stop: 'length' },
  ],
  'anthropic/refusal.sse': ['messages', { text: 'I', calls: [], stop: 'refusal' }],
  'anthropic/window-exceeded.sse': ['messages', { text: 'Half', stop: 'length' }],
  'anthropic/duplicate-start.sse': ['messages', { text: 'Hello', stop: 'stop', ...anthropicUsage }],
  'anthropic/second-start-after-text.sse': ['messages', { text: 'Hello', ...incomplete }],
  'openrouter/reasoning-details-and-cost.sse': [
    'chat',
    {
      text: 'Looking.',
      reasoning: 'Let me look.',
      stop: 'tool',
      calls: [{ id: 'toolu_1', name: 'glob', arguments: '{"pattern":"*"}' }],
      kept: [
        { type: 'reasoning.text', format: 'anthropic-claude-v1', index: 0, text: 'Let me look.', signature: 'EqQB==' },
        { type: 'reasoning.encrypted', data: 'Emw==', index: 1 },
      ],
      usage: { usage: { input: 25, cacheRead: 60, cacheWrite: 15, output: 7 }, costUsd: 0.00042 },
    },
  ],
  'openrouter/own-key-cost.sse': ['chat', { text: 'Hi', usage: { costUsd: 0.021 } }],
  'openrouter/error-in-choice.sse': ['chat', { text: 'par', ...failed('network', true) }],
  'openrouter/error-object.sse': [
    'chat',
    {
      text: 'par',
      calls: [],
      fault: {
        fault: { code: 'rate_limited', message: 'Provider returned error: slow down', status: 429 },
        retryable: true,
      },
    },
  ],
  'openrouter/null-arguments.sse': ['chat', { calls: [{ id: '0', name: 'bash', arguments: '' }], stop: 'tool' }],
  'deepseek/reasoning-and-cache.sse': [
    'chat',
    {
      text: '',
      reasoning: 'Thinking.',
      calls: [{ ...glob, id: 'call_00_a' }],
      stop: 'tool',
      kept: [{ type: 'reasoning_content', text: 'Thinking.' }],
      ...split,
    },
  ],
  'deepseek/out-of-resources.sse': ['chat', { text: 'Half', ...failed('network', true) }],
  'ollama/whole-calls-same-index.sse': [
    'chat',
    {
      calls: [
        { ...glob, arguments: '{"pattern":"a"}' },
        { ...glob, id: 'call_b', arguments: '{"pattern":"b"}' },
      ],
      stop: 'tool',
    },
  ],
  'ollama/calls-without-ids.sse': [
    'chat',
    {
      calls: [
        { id: '', name: 'glob', arguments: '{"pattern":"a"}' },
        { id: '', name: 'grep', arguments: '{"pattern":"b"}' },
      ],
      stop: 'tool',
    },
  ],
  'ollama/reasoning-field.sse': [
    'chat',
    { text: 'Hi', reasoning: 'Thinking.', stop: 'stop', kept: [{ type: 'reasoning_content', text: 'Thinking.' }] },
  ],
  'mistral/whole-call-no-index.sse': ['chat', { calls: [{ ...glob, id: 'gSIMJiOkT' }], stop: 'tool', ...plain }],
  'mistral/thinking-parts.sse': ['chat', { text: 'Hi', reasoning: 'Hm.', stop: 'stop' }],
  'mistral/empty-name-repeated.sse': ['chat', { calls: [glob], stop: 'tool' }],
  'moonshot/usage-in-choice.sse': ['chat', { text: 'Hi', stop: 'stop', ...split }],
  'xai/reasoning-outside-completion.sse': [
    'chat',
    { text: 'Hi', usage: { usage: { input: 100, cacheRead: 0, cacheWrite: 0, output: 37 } } },
  ],
  'groq/usage-elsewhere.sse': ['chat', { text: 'Hi', ...plain }],
  'lmstudio/cumulative-usage.sse': ['chat', { text: 'Hi', stop: 'stop', ...plain }],
  'lmstudio/name-in-pieces.sse': [
    'chat',
    { calls: [{ id: 'call_a', name: 'file_read', arguments: '{"path":"a"}' }], stop: 'tool' },
  ],
  'lmstudio/error-event.sse': ['chat', { text: 'H', ...failed('network', true) }],
  'llamacpp/odd-chunks.sse': ['chat', { text: 'Hi', ...failed('protocol', false), usage: null }],
  'llamacpp/unknown-reason-with-call.sse': ['chat', failed('protocol', false)],
  'llamacpp/no-name-no-id.sse': ['chat', { calls: [{ id: '', name: '', arguments: '{}' }], stop: 'tool' }],
  'snowflake/no-finish-but-usage.sse': ['chat', { text: 'Hi', stop: 'stop', fault: null, ...plain }],
  'alibaba/empty-id-in-later-pieces.sse': [
    'chat',
    { text: '', reasoning: 'Look.', calls: [glob], stop: 'tool', ...split },
  ],
  'alibaba/whole-answer.json': ['chat', { text: '', reasoning: 'Look.', calls: [glob], stop: 'tool', ...plain }],
  'anthropic/caller-beside-call.sse': [
    'messages',
    { calls: [{ ...glob, id: 'toolu_1', fields: { caller: { type: 'direct' } } }], stop: 'tool' },
  ],
  'anthropic/citations.sse': ['messages', { text: 'Found it.', stop: 'stop', kept: [] }],
  'anthropic/compaction-block.sse': [
    'messages',
    { text: 'Hello', stop: 'stop', kept: [{ type: 'compaction', content: 'The user asked for a list.' }] },
  ],
  'anthropic/input-tokens-at-end.sse': ['messages', { text: 'Hello', ...anthropicUsage }],
  'anthropic/mcp-blocks.sse': [
    'messages',
    {
      text: 'Found it.',
      calls: [],
      kept: [
        { type: 'mcp_tool_use', id: 'mcptoolu_1', name: 'search', input: { query: 'x' }, server_name: 'docs' },
        { type: 'mcp_tool_result', tool_use_id: 'mcptoolu_1', content: [{ type: 'text', text: 'ok' }] },
      ],
    },
  ],
  'anthropic/refusal-behind-server-tool.sse': [
    'messages',
    { text: 'Here', calls: [], stop: 'refusal', kept: [search, { type: 'web_search_tool_result', content: [] }] },
  ],
  'anthropic/server-tool-broken-input.sse': ['messages', { text: 'Hello', stop: 'stop', fault: null, kept: [] }],
  'anthropic/server-tool-input-at-start.sse': [
    'messages',
    {
      text: 'Found it.',
      calls: [],
      kept: [
        {
          type: 'server_tool_use',
          input: { url: 'https://example.com' },
          caller: { type: 'code_execution_20260120', tool_id: 'srvtoolu_0' },
        },
        { type: 'web_fetch_tool_result', content: { type: 'web_fetch_result', content: { type: 'document' } } },
      ],
    },
  ],
  'anthropic/start-again-after-thinking.sse': [
    'messages',
    {
      calls: [{ ...glob, id: 'toolu_2' }],
      stop: 'tool',
      fault: null,
      kept: [{ type: 'thinking', thinking: 'Second.', signature: 'S2==' }],
      ...anthropicUsage,
    },
  ],
  'anthropic/whole-answer.json': [
    'messages',
    {
      calls: [{ ...glob, id: 'toolu_1', fields: { caller: { tool_id: 'srvtoolu_1' } } }],
      stop: 'tool',
      kept: [{ type: 'server_tool_use', input: { code: 'x' } }],
      ...anthropicUsage,
    },
  ],
  'anthropic/whole-answer-refused.json': ['messages', { text: '', calls: [], stop: 'refusal', ...anthropicUsage }],
  'azure/filter-results-first.sse': ['chat', { text: 'Hi', stop: 'stop', fault: null }],
  'azure/null-usage-details.sse': ['chat', { text: 'Hi', reasoning: 'Hm.', stop: 'stop', ...plain }],
  'azure/responses-whole-answer.json': [
    'responses',
    { reasoning: 'Look.\n\nAnswer.', calls: [glob], stop: 'tool', kept: [summaryItem], ...split },
  ],
  'cerebras/whole-answer.json': ['chat', { text: 'Hi', stop: 'stop', ...split }],
  'gateway/arguments-as-object.sse': oneCall,
  'gateway/call-without-function.sse': oneCall,
  'gateway/error-event-with-text.sse': ['chat', { text: 'par', ...failed('rate_limited', true) }],
  'gateway/error-object-in-text.sse': [
    'chat',
    { text: 'par', fault: { fault: { code: 'network', message: 'Overloaded', status: 503 }, retryable: true } },
  ],
  'gateway/first-index-one.sse': ['chat', { text: 'Reading.', calls: [{ ...glob, id: 'toolu_1' }], stop: 'tool' }],
  'gateway/function-call-beside-tool-calls.sse': oneCall,
  'gateway/interleaved-ids-no-index.sse': [
    'chat',
    {
      calls: [
        { ...glob, arguments: '{"pattern":"a"}' },
        { id: 'call_b', name: 'grep', arguments: '{"pattern":"b"}' },
      ],
      stop: 'tool',
    },
  ],
  'gateway/lines-of-one-event.sse': ['chat', { text: 'Hi', stop: 'stop', fault: null }],
  'gateway/messages-call-twice.sse': oneMessagesCall,
  'gateway/messages-done-at-end.sse': ['messages', { text: 'Hello', stop: 'stop', fault: null }],
  'gateway/messages-input-at-start.sse': oneMessagesCall,
  'gateway/messages-no-index.sse': [
    'messages',
    { text: 'Looking.', calls: [{ ...glob, id: 'toolu_1' }], stop: 'tool' },
  ],
  'gateway/messages-pieces-behind-stop.sse': oneMessagesCall,
  'gateway/messages-same-index.sse': [
    'messages',
    {
      text: 'Looking.',
      calls: [
        { id: 'toolu_1', name: 'glob', arguments: '{"pattern":"a"}' },
        { id: 'toolu_2', name: 'glob', arguments: '{"pattern":"b"}' },
      ],
      stop: 'tool',
    },
  ],
  'gateway/messages-start-in-each-piece.sse': ['messages', { calls: [{ ...glob, id: 'toolu_0' }], stop: 'tool' }],
  'gateway/messages-text-under-index-of-call.sse': [
    'messages',
    { text: 'Looking.', calls: [{ ...glob, id: 'toolu_1' }], stop: 'tool' },
  ],
  'gateway/messages-type-of-event.sse': ['messages', { text: 'Hello', stop: 'stop', ...anthropicUsage }],
  'gateway/name-in-each-piece.sse': oneCall,
  'gateway/new-id-in-each-piece.sse': oneCall,
  'gateway/no-blank-behind-data.sse': ['chat', { text: 'Hi', stop: 'stop', fault: null }],
  'gateway/no-finish-but-whole-call.sse': [
    'chat',
    {
      ...incomplete,
      fault: {
        retryable: true,
        unfinished: [
          { type: 'tool_call', call: glob },
          { type: 'end', stop: 'tool' },
        ],
      },
    },
  ],
  'gateway/number-as-id.sse': ['chat', { calls: [{ ...glob, id: '7' }], stop: 'tool' }],
  'gateway/responses-arguments-as-object.sse': ['responses', { calls: [glob], stop: 'tool' }],
  'gateway/responses-call-in-output-alone.sse': [
    'responses',
    {
      calls: [
        { ...glob, arguments: '{"pattern":"a"}' },
        { ...glob, id: 'call_b', arguments: '{"pattern":"b"}' },
      ],
      stop: 'tool',
    },
  ],
  'gateway/responses-call-twice.sse': ['responses', { calls: [glob], stop: 'tool' }],
  'gateway/responses-no-ids.sse': ['responses', { calls: [glob], stop: 'tool' }],
  'gateway/responses-two-calls-one-index.sse': [
    'responses',
    {
      calls: [
        { ...glob, arguments: '{"pattern":"a"}' },
        { ...glob, id: 'call_b', arguments: '{"pattern":"b"}' },
      ],
      stop: 'tool',
    },
  ],
  'gateway/stop-with-call.sse': oneCall,
  'gateway/text-error-in-data.sse': [
    'chat',
    {
      text: 'par',
      fault: { fault: { message: 'upstream connect error or disconnect/reset before headers' }, retryable: true },
    },
  ],
  'gateway/tool-calls-without-call.sse': ['chat', { text: 'Hi', calls: [], stop: 'stop' }],
  'gateway/whole-answer-error.json': ['chat', failed('rate_limited', true)],
  'gateway/whole-answer-no-reason.json': ['chat', { text: 'Hi', stop: 'stop', fault: null }],
  'gateway/whole-call-again-other-index.sse': oneCall,
  'gateway/whole-call-behind-pieces.sse': oneCall,
  'gateway/whole-message-in-event.sse': ['chat', { text: 'Hi', stop: 'stop', ...plain }],
  'github-copilot/responses-new-item-ids.sse': ['responses', { calls: [glob], stop: 'tool' }],
  'google/error-in-array.sse': [
    'chat',
    { text: 'par', fault: { fault: { code: 'rate_limited', status: 429 }, retryable: true } },
  ],
  'google/malformed-function-call.sse': ['chat', { text: 'Half', ...failed('protocol', false) }],
  'google/signature-in-call.sse': ['chat', { calls: [{ ...glob, fields: googleSignature }], stop: 'tool', kept: [] }],
  'google/signature-on-message.sse': [
    'chat',
    { text: 'Hi', kept: [{ type: 'message_fields', fields: googleSignature }] },
  ],
  'google/upper-case-reason.sse': ['chat', { text: 'Half', stop: 'length' }],
  'groq/executed-tools.sse': [
    'chat',
    {
      text: 'Found it.',
      reasoning: 'Search.',
      calls: [],
      stop: 'stop',
      kept: [{ type: 'reasoning_content', text: 'Search.' }],
      ...plain,
    },
  ],
  'groq/tool-use-failed.sse': [
    'chat',
    {
      calls: [],
      fault: {
        fault: { code: 'bad_request', refusedCall: '{"name":"glob","arguments":{"pattern":*}}' },
        retryable: false,
      },
    },
  ],
  'groq/whole-answer-reasoning.json': ['chat', { text: 'Hi', reasoning: 'Hm.', stop: 'stop', ...plain }],
  'litellm/thinking-blocks.sse': [
    'chat',
    {
      text: 'Hi',
      kept: [
        { type: 'reasoning_content', text: 'Look.' },
        {
          type: 'message_fields',
          fields: { thinking_blocks: [{ type: 'thinking', thinking: 'Look.', signature: 'EqQB==' }] },
        },
      ],
    },
  ],
  'llamacpp/context-exceeded.sse': ['chat', failed('context_overflow', false)],
  'llamacpp/error-line.sse': [
    'chat',
    { text: 'par', fault: { fault: { code: 'network', message: 'slot unavailable', status: 500 }, retryable: true } },
  ],
  'llamacpp/length-in-text-and-calls.sse': [
    'chat',
    {
      text: 'Half',
      calls: [glob, { id: 'call_b', name: 'bash', arguments: '{"command":"l' }],
      stop: 'length',
      ...split,
    },
  ],
  'llamacpp/messages-error-type.sse': [
    'messages',
    { fault: { fault: { code: 'network', message: 'slot unavailable', status: 500 }, retryable: true } },
  ],
  'llamacpp/messages-length-in-call.sse': [
    'messages',
    {
      text: 'Looking.',
      calls: [
        { ...glob, id: 'toolu_1' },
        { id: 'toolu_2', name: 'bash', arguments: '{"command":"l' },
      ],
      stop: 'length',
    },
  ],
  'llamacpp/responses-no-output-index.sse': ['responses', { text: 'Looking.', calls: [glob], stop: 'tool', ...split }],
  'lmstudio/responses-reasoning-text.sse': [
    'responses',
    {
      reasoning: 'Look first.',
      calls: [glob],
      kept: [{ type: 'reasoning', content: [{ type: 'reasoning_text', text: 'Look first.' }] }],
    },
  ],
  'minimax/status-beside-answer.sse': ['chat', { text: 'Hi', stop: 'stop', fault: null }],
  'minimax/status-instead-of-answer.sse': ['chat', failed('rate_limited', true)],
  'mistral/model-length.sse': ['chat', { text: 'Half', stop: 'length' }],
  'moonshot/cached-tokens-beside-prompt.sse': ['chat', { text: 'Hi', ...split }],
  'ollama/reasoning-empty-content.sse': [
    'chat',
    { text: 'Hi', reasoning: 'Hm.', kept: [{ type: 'reasoning_content', text: 'Hm.' }] },
  ],
  'openai/responses-annotations.sse': ['responses', { text: 'Found it.', stop: 'stop', kept: [] }],
  'openai/responses-arguments-done-alone.sse': ['responses', { calls: [glob], stop: 'tool' }],
  'openai/responses-caller-beside-call.sse': [
    'responses',
    { calls: [{ ...glob, fields: { caller: { type: 'program', caller_id: 'prog_1' } } }], stop: 'tool' },
  ],
  'openai/responses-compaction.sse': [
    'responses',
    { text: 'Hi', stop: 'stop', kept: [{ type: 'compaction', encrypted_content: 'gCMP==' }] },
  ],
  'openai/responses-foreign-calls.sse': [
    'responses',
    { text: 'Hi', calls: [], stop: 'stop', kept: [{ type: 'file_search_call' }] },
  ],
  'openai/responses-lost-call.sse': ['responses', incomplete],
  'openai/responses-mcp-items.sse': [
    'responses',
    {
      text: 'Hi',
      calls: [],
      kept: [{ type: 'mcp_list_tools' }, { type: 'mcp_call', arguments: '{"q":"x"}', output: 'ok' }],
    },
  ],
  'openai/responses-phase.sse': [
    'responses',
    {
      text: 'Looking.',
      calls: [glob],
      kept: [{ type: 'layout_text', units: 8, phase: 'commentary' }, summaryItem, { type: 'layout_call' }],
    },
  ],
  'openai/responses-quota-error.sse': ['responses', failed('quota', false)],
  'openai/responses-refusal-in-item-alone.sse': ['responses', { text: 'No.', stop: 'refusal' }],
  'openai/responses-still-running.sse': ['responses', { text: 'Hel', ...incomplete }],
  'openai/responses-summary-parts.sse': [
    'responses',
    { text: 'Hi', reasoning: 'Look.\n\nAnswer.', kept: [summaryItem] },
  ],
  'openai/responses-text-done-alone.sse': ['responses', { text: 'Hi', stop: 'stop' }],
  'openai/responses-whole-answer-incomplete.json': ['responses', { text: 'Half', stop: 'length', ...split }],
  'openrouter/details-alone.sse': [
    'chat',
    { text: 'Hi', reasoning: 'Look.', kept: [{ type: 'reasoning.text', text: 'Look.', signature: 'EqQB==' }] },
  ],
  'openrouter/encrypted-items-apart.sse': [
    'chat',
    {
      text: 'Hi',
      kept: [
        { type: 'reasoning.encrypted', data: 'gAAA==', id: 'rs_1' },
        { type: 'reasoning.encrypted', data: 'gBBB==', id: 'rs_2' },
      ],
    },
  ],
  'openrouter/finish-twice.sse': ['chat', { text: 'Hi', stop: 'stop', usage: { ...plain.usage, costUsd: 0.00042 } }],
  'openrouter/reasoning-summary-pieces.sse': [
    'chat',
    {
      text: 'Hi',
      reasoning: 'Look first.',
      kept: [
        { type: 'reasoning.summary', summary: 'Look first.' },
        { type: 'reasoning.encrypted', data: 'gAAA==' },
      ],
    },
  ],
  'openrouter/responses-done-and-comments.sse': ['responses', { text: 'Hi', stop: 'stop', fault: null }],
  'openrouter/responses-items-out-of-order.sse': ['responses', { text: 'Hi', stop: 'stop', kept: [summaryItem] }],
  'perplexity/cost-as-object.sse': ['chat', { text: 'Hi', usage: { type: 'usage', ...plain.usage } }],
  'snowflake/empty-function-call.sse': ['chat', { calls: [glob], stop: 'tool', fault: null, ...plain }],
  'together/eos.sse': ['chat', { text: 'Hi', stop: 'stop' }],
  'vercel-gateway/cache-creation-tokens.sse': [
    'chat',
    { text: 'Hi', usage: { usage: { input: 25, cacheRead: 60, cacheWrite: 15, output: 7 }, costUsd: 0.00042 } },
  ],
  'vercel-gateway/signed-metadata.sse': ['chat', { text: 'Hi', kept: [signedMetadata] }],
  'vercel-gateway/unsigned-metadata.sse': ['chat', { text: 'Hi', stop: 'stop', kept: [] }],
  'vercel-gateway/whole-answer-signed.json': ['chat', { text: 'Hi', kept: [signedMetadata] }],
  'vllm/abort.sse': ['chat', { text: 'Half', ...failed('network', true) }],
  'vllm/reason-null-as-text.sse': ['chat', { text: 'Hello', ...incomplete }],
  'zai/chunks-without-reason-field.sse': [
    'chat',
    {
      reasoning: 'Add.',
      calls: [
        { ...glob, arguments: '{"pattern":"a"}' },
        { ...glob, id: 'call_b', arguments: '{"pattern":"b"}' },
      ],
      stop: 'tool',
      ...split,
    },
  ],
  'anthropic/text-invoke.sse': ['text', { text: 'Looking.', calls: [textCall], stop: 'tool' }],
  'cohere/text-action.sse': ['text', { text: '', reasoning: 'Look.', calls: [textCall], stop: 'tool' }],
  'deepseek/text-call-marks.sse': oneTextCall,
  'deepseek/text-call-marks-ascii.sse': oneTextCall,
  'deepseek/text-dsml-invoke.sse': typedTextCall,
  'ibm/text-function-call.sse': oneTextCall,
  'meta/text-function-object.sse': oneTextCall,
  'meta/text-python-tag.sse': oneTextCall,
  'microsoft/text-functools.sse': oneTextCall,
  'minicpm/text-function-cdata.sse': [
    'text',
    { text: '', calls: [{ ...textCall, arguments: '{"pattern":"<a>*"}' }], stop: 'tool' },
  ],
  'minimax/text-invoke.sse': oneTextCall,
  'mistral/text-call-id-and-args.sse': ['text', { text: 'Sure.', calls: [textCall], stop: 'tool' }],
  'mistral/text-think-marks.sse': ['text', { text: 'Hi', calls: [], stop: 'stop' }],
  'moonshot/text-call-section.sse': oneTextCall,
  'nvidia/text-toolcall-list.sse': [
    'text',
    {
      text: '',
      calls: [
        { ...textCall, arguments: '{"pattern":"a"}' },
        { ...textCall, arguments: '{"pattern":"b"}' },
      ],
      stop: 'tool',
    },
  ],
  'openai/text-analysis-channel.sse': ['text', { text: 'Hi', calls: [], stop: 'stop' }],
  'qwen/text-function-parameters.sse': typedTextCall,
  'qwen/text-tool-call-json.sse': ['text', { text: '', reasoning: 'Look.', calls: [textCall], stop: 'tool' }],
  'seed/text-tool-call.sse': ['text', { text: '', reasoning: 'Look.', calls: [textCall], stop: 'tool' }],
  'zai/text-arg-keys.sse': typedTextCall,
  'zai/sensitive.sse': ['chat', { text: 'Half', stop: 'content_filter' }],
};

/** A conversation of a model without native tool calls. */
const withoutNativeCalls: Conversation = {
  system: '',
  tools: Object.entries({
    glob: { pattern: { type: 'string' } },
    bash: { command: { type: 'string' } },
    file_read: { path: { type: 'string' }, limit: { type: 'integer' } },
  }).map(([name, properties]) => ({ name, description: '', input_schema: { type: 'object', properties } })),
  settings: { model_output_size: 32_768, tool_protocol: 'text' },
  messages: [],
};
const wireOf: Readonly<Record<string, Wire>> = {
  ...wires,
  text: createTextProtocol().wire(wires.chat!, withoutNativeCalls, {}),
};

/** Reads a body as the program does, in the pieces in which it arrives. */
function readBody(wire: Wire, pieces: readonly Uint8Array[]): Decoded {
  const reader = createAnswerReader(wire, undefined, { host: 'host', contentType: '' });
  const chunks = pieces.flatMap((piece) => reader.push(piece));
  return fold([...chunks, ...reader.end()]);
}

test.each(Object.entries(cases))('%s, whole and one byte at a time', (file, [name, want]) => {
  const bytes = readFileSync(new URL(file, fixtures));
  const wire = wireOf[name]!;
  const whole = readBody(wire, [bytes]);
  expect(whole).toMatchObject(want);
  const each = Array.from(bytes, (byte) => Uint8Array.of(byte));
  expect(readBody(wire, each)).toEqual(whole);
  if (file.endsWith('.sse') && name !== 'text') expect(decode(wire, each)).toEqual(decode(wire, [bytes]));
});

test('every fixture is used and every folder of them is known', () => {
  const files = readdirSync(fixtures, { recursive: true, encoding: 'utf8' });
  const streams = files.filter((name) => name.endsWith('.sse'));
  const folders = new Set([...streams, ...Object.keys(cases)].map((name) => dirname(name)));
  const answers = files.filter((name) => folders.has(dirname(name)));
  expect(answers.sort()).toEqual(Object.keys(cases).sort());
});

test('a stream cut anywhere before its finish gives no call and one retryable fault', () => {
  for (const [file, [name]] of Object.entries(cases).filter(([key]) =>
    /parallel|thinking-text|reasoning-and-call|whole-calls/.test(key),
  )) {
    const bytes = readFileSync(new URL(file, fixtures));
    const end = bytes.indexOf(
      name === 'chat'
        ? '"tool_calls"}]'
        : name === 'messages'
          ? '"tool_use", "stop_sequence"'
          : '"response.completed", ',
    );
    for (let at = 0; at < end; at++) {
      const got = fold(decode(wires[name]!, [bytes.subarray(0, at)]));
      expect([got.calls, got.stop, got.fault?.fault.code, got.fault?.retryable], `${file} cut at ${at}`).toEqual([
        [],
        null,
        'stream_incomplete',
        true,
      ]);
    }
  }
});

test('endless text and endless arguments are given up at 8 MiB', () => {
  const big = 'x'.repeat(1024 * 1024);
  const events: Readonly<Record<string, (value: string) => object>> = {
    'chat text': (content) => ({ choices: [{ index: 0, delta: { content } }] }),
    'chat arguments': (text) => ({
      choices: [{ index: 0, delta: { tool_calls: [{ index: 0, function: { name: 'a', arguments: text } }] } }],
    }),
    'messages text': (text) => ({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }),
    'messages arguments': (text) => ({
      type: 'content_block_delta',
      index: 0,
      delta: { type: 'input_json_delta', partial_json: text },
    }),
    'responses text': (delta) => ({ type: 'response.output_text.delta', item_id: 'm', delta }),
    'responses arguments': (delta) => ({ type: 'response.function_call_arguments.delta', item_id: 'f', delta }),
  };
  for (const [name, make] of Object.entries(events)) {
    const decoder = wires[name.split(' ')[0]!]!.decoder();
    const type = name.endsWith('text') ? 'text' : 'tool_use';
    decoder.push({
      event: '',
      data: JSON.stringify({ type: 'content_block_start', index: 0, content_block: { type, text: '' } }),
    });
    const chunks = Array.from({ length: 10 }, () =>
      decoder.push({ event: '', data: JSON.stringify(make(big)) }),
    ).flat();
    expect(
      chunks.filter(({ type }) => type === 'fault'),
      name,
    ).toMatchObject([{ fault: { code: 'protocol' }, retryable: false }]);
    expect(decoder.end(), name).toEqual([]);
  }
});

/** What a wire makes of these events, as data. */
function play(wire: 'chat' | 'messages' | 'responses', ...events: readonly object[]): Decoded {
  const decoder = wires[wire]!.decoder();
  return fold([
    ...events.flatMap((event) => decoder.push({ event: '', data: JSON.stringify(event) })),
    ...decoder.end(),
  ]);
}
const chat = (delta: object, finish: string | null = null): object => ({
  choices: [{ index: 0, delta, finish_reason: finish }],
});

test('an empty legacy function_call beside tool_calls is not a call', () => {
  const made = { id: 'call_a', type: 'function', function: { name: 'glob', arguments: '{}' } };
  for (const old of [{ name: '', arguments: '' }, { name: null, arguments: null }, {}]) {
    expect(play('chat', chat({ tool_calls: [made], function_call: old }), chat({}, 'tool_calls')).calls).toEqual([
      { id: 'call_a', name: 'glob', arguments: '{}' },
    ]);
    expect(
      fold(
        wires.chat!.decodeBody({
          choices: [{ message: { tool_calls: [made], function_call: old }, finish_reason: 'tool_calls' }],
        }),
      ).calls,
    ).toHaveLength(1);
  }
});

test('content in parts: only a list is thinking, and only in a part of that type', () => {
  const hm = [{ type: 'text', text: 'Hm.' }];
  const parts = [
    { type: 'thinking', thinking: 'no list' },
    { type: 'reference', thinking: hm },
    { type: 'thinking', thinking: hm },
    { type: 'text', text: 'Hi' },
  ];
  expect(play('chat', chat({ content: parts }), chat({}, 'stop'))).toMatchObject({
    text: 'Hi',
    reasoning: 'Hm.',
    stop: 'stop',
  });
});

test('Responses: a delta that is not a text says nothing, and does not stand for the answer that came whole', () => {
  const output = [{ type: 'message', id: 'm1', content: [{ type: 'output_text', text: 'Hello' }] }];
  const completed = { type: 'response.completed', response: { status: 'completed', output } };
  for (const delta of ['', null, 5, { text: 'x' }]) {
    expect(
      play('responses', { type: 'response.output_text.delta', item_id: 'm0', delta }, completed),
      JSON.stringify(delta),
    ).toMatchObject({ text: 'Hello', stop: 'stop' });
  }
});

test('Responses: only a message with text takes a place between reasoning and calls, with its phase', () => {
  const call = { type: 'function_call', id: 'f', call_id: 'c', name: 'glob', arguments: '{}' };
  const message = (text: string, phase?: unknown): object => ({
    type: 'message',
    id: `m${text}`,
    content: [{ type: 'output_text', text }],
    ...(phase === undefined ? {} : { phase }),
  });
  const kept = (said: object): readonly unknown[] =>
    play('responses', {
      type: 'response.completed',
      response: { status: 'completed', output: [call, reasoningItem, said] },
    }).kept;
  expect(kept(message(''))).toEqual([{ type: 'layout_call' }, reasoningItem]);
  expect(kept(message('Hi', 5))).toEqual([{ type: 'layout_call' }, reasoningItem, { type: 'layout_text', units: 2 }]);
  expect(kept(message('Hi', 'commentary'))).toEqual([
    { type: 'layout_call' },
    reasoningItem,
    { type: 'layout_text', units: 2, phase: 'commentary' },
  ]);
});

test.each(Object.keys(wires))('%s: an event without data means nothing', (name) => {
  const decoder = wires[name]!.decoder();
  expect(decoder.push({ event: '', data: '' })).toEqual([]);
  expect(decoder.push({ event: 'ping', data: '' })).toEqual([]);
  expect(decoder.end()).toMatchObject([{ type: 'fault', fault: { message: expect.stringContaining('ended') } }]);
});

test('nothing is given after an end or a fault', () => {
  for (const wire of Object.values(wires)) {
    const decoder = wire.decoder();
    expect(decoder.end()).toHaveLength(1);
    expect([
      ...decoder.push({ event: '', data: '{"choices":[{"index":0,"delta":{"content":"late"}}]}' }),
      ...decoder.end(),
    ]).toEqual([]);
  }
});

test('JSON that is not an answer is a protocol fault, and an error object is what it says', () => {
  const bodies: readonly (readonly [Json, string])[] = [
    [{}, 'protocol'],
    [[], 'protocol'],
    ['hello', 'network'],
    [null, 'protocol'],
    [{ error: { code: 401, message: 'no key' } }, 'auth'],
    [{ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }, 'network'],
  ];
  const codes = (read: (body: Json) => Decoded): unknown[] => bodies.map(([body]) => read(body).fault?.fault.code);
  for (const wire of Object.values(wires))
    expect(codes((body) => fold(wire.decodeBody(body)))).toEqual(bodies.map(([, code]) => code));
});

import { overflowIn } from './overflow.js';

test.each([
  ['Anthropic', 'prompt is too long: 213462 tokens > 200000 maximum', { window: 200_000, tokens: 213_462 }],
  [
    'Anthropic, with the output',
    'input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again',
    { window: 200_000, tokens: 188_240 },
  ],
  ['Anthropic, by bytes', 'Request exceeds the maximum allowed number of bytes.', {}],
  ['a proxy, without a word', 'local answered HTTP 413.', {}],
  [
    'OpenAI, Responses',
    'Your input exceeds the context window of this model. Please adjust your input and try again.',
    {},
  ],
  [
    'OpenAI, chat',
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 131072 tokens. Please reduce the length of the messages.",
    { window: 128_000, tokens: 131_072 },
  ],
  [
    'Google',
    'The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).',
    { window: 1_048_575, tokens: 1_196_265 },
  ],
  ['Google, short', 'The input token count exceeds the maximum number of tokens allowed 1048576.', {}],
  [
    'Mistral',
    'Prompt contains 40012 tokens and 0 draft tokens, too large for model with 32768 maximum context length',
    { window: 32_768, tokens: 40_012 },
  ],
  [
    'xAI',
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    { window: 131_072, tokens: 537_812 },
  ],
  [
    'DeepSeek',
    "This model's maximum context length is 65536 tokens. However, you requested 70021 tokens (66021 in the messages, 4000 in the completion). Please reduce the length of the messages or completion.",
    { window: 65_536, tokens: 70_021 },
  ],
  [
    'vLLM',
    "This model's maximum context length is 4096 tokens. However, your request has 5012 input tokens. Please reduce the length of the input messages.",
    { window: 4096, tokens: 5012 },
  ],
  [
    'vLLM, with the output',
    "'max_tokens' or 'max_completion_tokens' is too large: 512. This model's maximum context length is 4096 tokens and your request has 4001 input tokens (512 > 4096 - 4001).",
    { window: 4096, tokens: 4001 },
  ],
  [
    'vLLM, engine',
    'The decoder prompt (length 5000) is longer than the maximum model length of 4096.',
    { window: 4096 },
  ],
  [
    'llama.cpp',
    'request (5031 tokens) exceeds the available context size (4096 tokens), try increasing it',
    { window: 4096, tokens: 5031 },
  ],
  ['llama.cpp, older', 'the request exceeds the available context size, try increasing it', {}],
  ['Ollama', 'the input length exceeds the context length', {}],
  ['Ollama, cloud', 'prompt too long; exceeded max context length by 1204 tokens', {}],
  [
    'LM Studio',
    'Trying to keep the first 6011 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough.',
    { window: 4096 },
  ],
  ['our gateway', 'the body is larger than 9437184 bytes', {}],
])('%s says that the conversation is too large', (_who, message, told) => {
  expect(overflowIn(message)).toEqual(told);
  // As the gateway passes it on.
  expect(overflowIn(`local answered HTTP 400: ${message}`)).toEqual(told);
});

test.each([
  'Rate limit reached for gpt-5 in organization org-x on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000.',
  'max_tokens: 200000 > 64000, which is the maximum allowed number of output tokens for claude',
  'messages: text content blocks must be non-empty',
  'Internal server error',
  '',
])('%j is another refusal', (message) => {
  expect(overflowIn(message)).toBeUndefined();
});

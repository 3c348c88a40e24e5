import { allowedOrigins } from './origins.js';

const isAllowed = allowedOrigins('https://Agents.example.com:443/below', ['http://localhost:6274']);

test.each([
  ['https://agents.example.com', true],
  ['HTTPS://AGENTS.example.com', true],
  ['http://localhost:6274', true],
  ['vscode-file://vscode-app', true],
  ['http://agents.example.com', false],
  ['https://agents.example.com:8443', false],
  ['https://agents.example.com.evil.example', false],
  ['https://agents.example.com, https://evil.example', false],
  ['http://localhost:6275', false],
  ['null', false],
  ['', false],
])('a page of %j may call: %s', (origin, expected) => expect(isAllowed(origin)).toBe(expected));

import { definitionOf } from './tool-definition.js';

test.each([
  [undefined, false],
  [{}, false],
  [{ readOnlyHint: false }, false],
  [{ readOnlyHint: true }, true],
])('a tool with annotations %j only reads: %s', (annotations, isReadOnly) => {
  const tool = definitionOf('docs', { name: 'find', inputSchema: { type: 'object' }, annotations });
  expect(tool).toMatchObject({ name: 'docs__find', isReadOnly });
});

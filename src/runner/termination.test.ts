import * as fc from '../../test/builders/properties.js';
import { TerminationMessage } from '../protocol/run.js';
import { renderTermination } from './termination.js';

describe('renderTermination', () => {
  test('holds a short outcome whole', () => {
    expect(JSON.parse(renderTermination({ reason: 'Completed', message: '', output: 'Hello.' }, 2))).toEqual({
      v: 1,
      reason: 'Completed',
      message: '',
      output: 'Hello.',
      outputTruncated: false,
      steps: 2,
    });
  });

  test('keeps null for an agent that never spoke', () => {
    expect(JSON.parse(renderTermination({ reason: 'ModelError', message: 'down', output: null }, 0))).toMatchObject({
      output: null,
      outputTruncated: false,
    });
  });

  test('uses the room for a long output', () => {
    const text = renderTermination({ reason: 'Completed', message: '', output: 'x'.repeat(100_000) }, 9);
    expect(Buffer.byteLength(text)).toBeGreaterThan(2600);
    expect(JSON.parse(text)).toMatchObject({ outputTruncated: true, steps: 9 });
  });

  test('has at most 3072 bytes and parses, whatever the texts are', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (message, output) => {
        const text = renderTermination(
          { reason: 'RunnerError', message: message.repeat(90), output: output.repeat(300) },
          1,
        );
        expect(Buffer.byteLength(text)).toBeLessThanOrEqual(3072);
        TerminationMessage.parse(JSON.parse(text));
      }),
    );
  });
});

import { encodeFrame, FrameDecoder, MAX_FRAME_BYTES, ToolsCall } from './tools-socket.js';

const frameOf = (text: string | Buffer) => {
  const body = Buffer.from(text);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(body.length);
  return Buffer.concat([length, body]);
};

const result = { type: 'result', isError: false, result: { output: 'hällo' } } as const;

describe('frames', () => {
  test('come back as they were, however the bytes are cut', () => {
    const bytes = encodeFrame(result);
    for (const size of [1, 2, 3, 5, 7, bytes.length]) {
      const decoder = new FrameDecoder();
      const frames: unknown[] = [];
      for (let i = 0; i < bytes.length; i += size) frames.push(...decoder.push(bytes.subarray(i, i + size)));
      expect(frames).toEqual([result]);
    }
  });

  test('a half frame gives nothing yet', () => {
    expect(new FrameDecoder().push(encodeFrame(result).subarray(0, -1))).toEqual([]);
  });

  test('the largest body passes', () => {
    const body = `{"a":"${'x'.repeat(MAX_FRAME_BYTES - 8)}"}`;
    expect(new FrameDecoder().push(frameOf(body))).toHaveLength(1);
  });

  test('a value that is too large is not encoded', () => {
    const large = { ...result, result: { output: 'x'.repeat(MAX_FRAME_BYTES) } };
    expect(() => encodeFrame(large)).toThrow('a frame holds at most 1048576 bytes of JSON');
  });
});

describe('hostile bytes are refused', () => {
  const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;
  test.each([
    ['a length of zero', Buffer.alloc(4), 'a frame of a size that is not allowed'],
    [
      'a length above the bound, before its body is there',
      Buffer.from([0, 16, 0, 1]),
      'a frame of a size that is not allowed',
    ],
    ['the largest length', Buffer.from([255, 255, 255, 255]), 'a frame of a size that is not allowed'],
    ['text that is not JSON', frameOf('GET / HTTP/1.1'), 'a frame that is not JSON'],
    ['bytes that are not UTF-8', frameOf(Buffer.from([0x22, 0xff, 0x22])), 'a frame that is not JSON'],
    ['depth 33', frameOf(nested(33)), 'JSON that nests deeper than 32'],
    ['depth of a whole frame', frameOf('['.repeat(MAX_FRAME_BYTES)), 'JSON that nests deeper than 32'],
    ['a second frame', Buffer.concat([frameOf('{}'), frameOf('{}')]), 'more frames than the protocol allows'],
    [
      'one byte after the frame',
      Buffer.concat([frameOf('{}'), Buffer.from([0])]),
      'more frames than the protocol allows',
    ],
  ])('%s', (_name, bytes, message) => {
    expect(() => new FrameDecoder().push(bytes)).toThrow(message);
  });

  test('depth 32 passes, and brackets in strings do not count', () => {
    expect(new FrameDecoder().push(frameOf(nested(32)))).toHaveLength(1);
    expect(new FrameDecoder().push(frameOf(JSON.stringify({ a: `\\"${'['.repeat(500)}` })))).toHaveLength(1);
  });
});

describe('a call', () => {
  const call = { type: 'call', run: 'helper-1', call: 1, tool: 'shell', input: {} };
  test.each([
    ['a run that would leave the directory of logs', { ...call, run: '../x' }],
    ['a run with a slash', { ...call, run: 'a/b' }],
    ['a number below 1', { ...call, call: 0 }],
    ['an unknown tool', { ...call, tool: 'constructor' }],
    ['an input that is no object', { ...call, input: [] }],
  ])('with %s is refused', (_name, value) => {
    expect(ToolsCall.safeParse(value).success).toBe(false);
  });

  test('of a known tool passes', () => {
    expect(ToolsCall.parse(call)).toEqual(call);
  });
});

import { describePicture, MAX_PICTURE_BYTES, pictureOf, picturesIn, pictureTypeOf } from './pictures.js';

/** What is read of one: its head, and as many bytes. */
function pngOf(width: number, height: number, bytes = 64): Buffer {
  const file = Buffer.alloc(bytes);
  file.write('89504e470d0a1a0a0000000d49484452', 'hex');
  file.writeUInt32BE(width, 16);
  file.writeUInt32BE(height, 20);
  return file;
}

test.each([
  ['image/png', pngOf(1, 1)],
  ['image/jpeg', Buffer.from('ffd8ffe000104a46', 'hex')],
  ['image/gif', Buffer.from('GIF89a')],
  ['image/webp', Buffer.from('RIFF\u0001\u0002\n\u0004WEBPVP8 ')],
  [undefined, Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>')],
  [undefined, Buffer.from('RIFF1234WAVE')],
  [undefined, Buffer.alloc(0)],
])('%s is told by its first bytes', (type, bytes) => {
  expect(pictureTypeOf(bytes)).toBe(type);
});

test('what is too large in bytes or pixels is not shown', () => {
  expect(pictureOf(pngOf(1, 1, MAX_PICTURE_BYTES))).toBeDefined();
  expect(pictureOf(pngOf(1, 1, MAX_PICTURE_BYTES + 1))).toBeUndefined();
  expect(pictureOf(pngOf(8000, 1))).toBeDefined();
  expect(pictureOf(pngOf(1, 8001))).toBeUndefined();
});

test('of what another side calls pictures, four that are some', () => {
  const png = { data: pngOf(1, 1).toString('base64') };
  const none = { data: Buffer.from('no picture').toString('base64') };
  expect(picturesIn([none, png, png, png, png, png])).toHaveLength(3);
  expect(picturesIn([{ ...png, mediaType: 'image/jpeg' } as typeof png])).toMatchObject([{ mediaType: 'image/png' }]);
  expect(describePicture({ mediaType: 'image/png', data: png.data })).toMatch(/^image\/png, \d+ bytes$/);
});

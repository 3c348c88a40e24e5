/** Pictures for models: a PNG of one colour, with as many bytes as a test wants. */
import { crc32, deflateSync } from 'node:zlib';

/** `bytes` is the least that the file has: what does not belong to the picture follows its end. */
export function pngOf(width: number, height: number, bytes = 0): Buffer {
  const size = Buffer.alloc(8);
  size.writeUInt32BE(width, 0);
  size.writeUInt32BE(height, 4);
  const rows = deflateSync(Buffer.alloc(height * (Math.ceil(width / 8) + 1)));
  const file = Buffer.concat([
    Buffer.from('89504e470d0a1a0a', 'hex'),
    chunk('IHDR', Buffer.concat([size, Buffer.from([1, 0, 0, 0, 0])])),
    chunk('IDAT', rows),
    chunk('IEND', Buffer.alloc(0)),
  ]);
  return Buffer.concat([file, Buffer.alloc(Math.max(0, bytes - file.length))]);
}

function chunk(type: string, content: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(type), content]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(content.length);
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(named));
  return Buffer.concat([length, named, sum]);
}

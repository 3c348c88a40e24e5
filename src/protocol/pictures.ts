/** Pictures in results of tools: what models take, and how it is told from its first bytes. Pure. */
import { z } from 'zod';

const TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'] as const;
export type PictureType = (typeof TYPES)[number];

/** Of one picture, so that one fits a frame of the tools socket beside the words of its result. */
export const MAX_PICTURE_BYTES = 640 * 1024;
/** Of one result. */
export const MAX_PICTURES = 4;
/** Providers refuse more in either direction. */
export const MAX_PICTURE_PIXELS = 8000;
/** Bytes of a file that tell its type. */
export const PICTURE_HEAD_BYTES = 24;

export const Picture = z.object({
  mediaType: z.enum(TYPES),
  data: z
    .string()
    .max(Math.ceil(MAX_PICTURE_BYTES / 3) * 4)
    .describe('base64'),
});
export type Picture = z.output<typeof Picture>;

const SIGNATURES: readonly (readonly [type: PictureType, signature: RegExp])[] = [
  ['image/png', /^\x89PNG\r\n\W\n/],
  ['image/jpeg', /^\xff\xd8\xff/],
  ['image/gif', /^GIF8[79]a/],
  ['image/webp', /^RIFF[^]{4}WEBP/],
];

/** By its first bytes; undefined when it is none that models take. */
export function pictureTypeOf(bytes: Buffer): PictureType | undefined {
  const head = bytes.toString('latin1', 0, PICTURE_HEAD_BYTES);
  return SIGNATURES.find(([, signature]) => signature.test(head))?.[0];
}

/** The bytes as a picture that a model can be shown; undefined when they are none, or too much. */
export function pictureOf(bytes: Buffer): Picture | undefined {
  const mediaType = pictureTypeOf(bytes);
  if (mediaType === undefined || bytes.length > MAX_PICTURE_BYTES || isTooWide(mediaType, bytes)) return undefined;
  return { mediaType, data: bytes.toString('base64') };
}

/** Only of a PNG, whose size stands in its head: a whole page can be long. */
function isTooWide(type: PictureType, bytes: Buffer): boolean {
  if (type !== 'image/png' || bytes.length < PICTURE_HEAD_BYTES) return false;
  return Math.max(bytes.readUInt32BE(16), bytes.readUInt32BE(20)) > MAX_PICTURE_PIXELS;
}

/** What another side calls pictures, as far as they are some and not too many. */
export function picturesIn(given: readonly { data: string }[]): Picture[] {
  return given.slice(0, MAX_PICTURES).flatMap(({ data }) => pictureOf(Buffer.from(data, 'base64')) ?? []);
}

/** For a person or a model: `image/png, 1234 bytes`. */
export function describePicture({ mediaType, data }: { mediaType: string; data: string }): string {
  return `${mediaType}, ${Buffer.byteLength(data, 'base64')} bytes`;
}

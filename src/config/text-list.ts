/** A setting that lists texts. */
import { z } from 'zod';

/** `one, two` as a list; empty when absent. */
export const textList = z
  .string()
  .default('')
  .transform((text) =>
    text
      .split(',')
      .map((part) => part.trim())
      .filter((part) => part !== ''),
  );

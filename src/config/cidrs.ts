/** A setting that lists address ranges. */
import { z } from 'zod';
import { textList } from './text-list.js';

const CIDR = /^[0-9a-fA-F.:]+\/\d{1,3}$/;

/** `10.0.0.0/8, fd00::/8` as a list; empty when absent. */
export const cidrList = textList.pipe(
  z.array(z.string().regex(CIDR, 'must be ranges in CIDR notation, separated by commas')),
);

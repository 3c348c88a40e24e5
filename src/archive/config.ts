/** Setting of the processes that use the archive. */
import { z } from 'zod';

/** `BOXWRIGHT_ARCHIVE_URL`; a secret, since it contains a password. */
export const archiveUrl = z
  .url({ protocol: /^postgres(ql)?$/, error: 'must be a URL like postgresql://user:password@host:5432/database' })
  .optional()
  .describe('PostgreSQL that keeps finished runs after they are gone from the cluster; none when absent.');

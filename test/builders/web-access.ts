/** The web for tools under test: pages are read in this thread, and the addresses of this machine may be allowed. */
import { publicAddresses } from '../../src/net/public-address.js';
import type { AddressRule } from '../../src/net/public-address.js';
import type { Resolve } from '../../src/net/dial.js';
import type { WebAccess } from '../../src/runner/tools/web/fetch.js';
import { pageText } from '../../src/runner/tools/web/page-text.js';

/** Names resolve to 127.0.0.1 unless `resolve` says otherwise; without `isAllowed` only public addresses are. */
export function webAccess(options: { isAllowed?: AddressRule; resolve?: Resolve } = {}): WebAccess {
  return {
    dialer: {
      isAllowed: options.isAllowed ?? publicAddresses(),
      resolve: options.resolve ?? (() => Promise.resolve(['127.0.0.1'])),
    },
    readPage: async (source) => {
      if ('html' in source) return pageText(source.html, source.url);
      const { pdfText } = await import('../../src/runner/tools/web/pdf-text.js');
      return pdfText(source.pdf, () => false);
    },
  };
}

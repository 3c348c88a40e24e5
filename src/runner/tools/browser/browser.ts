/** One headless browser of a run: started by the first call that needs it, with one page at a time, ended with the tools. */
import { stripVTControlCharacters } from 'node:util';
import type { Browser as Chromium, BrowserContext, Page } from 'playwright-core';
import type { Dialer } from '../../../net/dial.js';
import { cleanEnvironment } from '../child-process.js';
import { ToolFailure } from '../tool-failure.js';
import { startFilteringProxy } from './filtering-proxy.js';
import type { FilteringProxy } from './filtering-proxy.js';

const LAUNCH_MS = 30_000;
const NAVIGATION_MS = 30_000;
const ACTION_MS = 5_000;
const MAX_PAGES = 5;
const VIEWPORT = { width: 1280, height: 800 };

export interface BrowserOptions {
  /** Path of Chromium's headless shell. */
  executable: string;
  /** HOME of the browser. */
  home: string;
  dialer: Dialer;
}

/** What the tools of the browser work on. */
export interface Browser {
  /** The page that was opened last; starts the browser. */
  page(): Promise<Page>;
  /** Whether the proxy refused the host because of its address. */
  wasRefused(host: string): boolean;
  /** Ends the browser; the next {@link page} starts another one. Never rejects. */
  close(): Promise<void>;
}

interface Running {
  proxy: FilteringProxy;
  chromium: Chromium;
  context: BrowserContext;
}

/** Nothing is started or loaded before the first page is asked for. */
export function createBrowser(options: BrowserOptions): Browser {
  let running: Promise<Running> | undefined;
  let refused: (host: string) => boolean = () => false;
  const close = async () => {
    const ending = running;
    running = undefined;
    const ended = await ending?.catch(() => undefined);
    await ended?.chromium.close().catch(() => undefined);
    await ended?.proxy.close();
  };
  return {
    async page() {
      running ??= launch(options);
      try {
        const { context, chromium, proxy } = await running;
        refused = (host) => proxy.wasRefused(host);
        if (!chromium.isConnected()) throw new Error('the browser has ended');
        return context.pages().at(-1) ?? (await context.newPage());
      } catch (error) {
        await close();
        throw new ToolFailure(`The browser could not be started: ${firstLine(error)}`);
      }
    },
    wasRefused: (host) => refused(host),
    close,
  };
}

async function launch({ executable, home, dialer }: BrowserOptions): Promise<Running> {
  // The package is there in the image variant with a browser only.
  const { chromium: driver } = await import('playwright-core');
  const proxy = await startFilteringProxy(dialer);
  try {
    const chromium = await driver.launch({
      executablePath: executable,
      timeout: LAUNCH_MS,
      // The sandbox of Chromium needs rights that no container of a run has: the container itself is the sandbox.
      chromiumSandbox: false,
      // Everything goes through the proxy: no name is looked up here, and no datagram leaves.
      args: [
        '--disable-quic',
        '--force-webrtc-ip-handling-policy=disable_non_proxied_udp',
        '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
      ],
      proxy: { server: proxy.url, bypass: '<-loopback>' },
      env: cleanEnvironment(home),
      handleSIGINT: false,
      handleSIGTERM: false,
      handleSIGHUP: false,
    });
    const context = await chromium.newContext({ acceptDownloads: false, serviceWorkers: 'block', viewport: VIEWPORT });
    context.setDefaultNavigationTimeout(NAVIGATION_MS);
    context.setDefaultTimeout(ACTION_MS);
    context.on('page', () => {
      const [oldest, ...others] = context.pages();
      if (others.length >= MAX_PAGES) oldest?.close().catch(() => undefined);
    });
    return { proxy, chromium, context };
  } catch (error) {
    await proxy.close();
    throw error;
  }
}

/** What a driver's error says before its call log. */
export function firstLine(error: unknown): string {
  const [line = ''] = (error instanceof Error ? error.message : 'unknown').split('\n');
  // Colours and the name of the driver's function are of no use to a model.
  return stripVTControlCharacters(line)
    .replace(/^\w+\.\w+: /, '')
    .slice(0, 300);
}

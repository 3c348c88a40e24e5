/** The tools `browser_*`. Each gives the page as it is afterwards, so that a model needs no second call to see it. */
import type { Page } from 'playwright-core';
import { MAX_PICTURE_PIXELS, pictureOf, type Picture } from '../../../protocol/pictures.js';
import { targetOf } from '../../../net/dial.js';
import { BROWSER_SECONDS } from '../../../protocol/tools-socket.js';
import type { ToolInput } from '../../../protocol/tools-socket.js';
import type { ToolResult } from '../../engine.js';
import { withPictures } from '../../results.js';
import type { ToolContext } from '../executor.js';
import { MAX_SHOWN_BYTES, openOutputLog } from '../output-capture.js';
import { ToolFailure } from '../tool-failure.js';
import { firstLine } from './browser.js';
import type { Browser } from './browser.js';
import { cutUtf8 } from '../../../runtime/text.js';

/** How long a page may go on loading after a click before it is shown as it is. */
const SETTLE_MS = 2_000;
const MAX_PIXELS = 1280 * 20_000;
/** Of what is shown when the file itself is too large for that. */
const JPEG_QUALITY = 60;

/** What to tell where there is no browser. */
export const NO_BROWSER =
  'The image of this run has no browser. An operator adds one with the browser variant of the image (docs/agents.md); fetch reads pages without it.';

type Work = (page: Page, browser: Browser) => Promise<Record<string, unknown>>;

export function navigate(input: ToolInput<'browser_navigate'>, context: ToolContext): Promise<ToolResult> {
  return onPage(context, async (page, browser) => {
    const url = URL.parse(input.url);
    if (url === null || !/^https?:$/.test(url.protocol)) {
      throw new ToolFailure('url is not an address such as https://example.com/page.');
    }
    try {
      const response = await page.goto(url.href, { waitUntil: 'domcontentloaded' });
      return { status: response?.status() ?? null, ...(await shown(page)) };
    } catch (error) {
      // Its error page comes later and would end the next navigation: that gets a new page.
      if (firstLine(error).includes('net::ERR_')) await page.close();
      if (browser.wasRefused(targetOf(url).host)) {
        throw new ToolFailure(`${url.hostname} is not an address of the public internet; only those can be opened.`);
      }
      throw error;
    }
  });
}

export function snapshot(_input: ToolInput<'browser_snapshot'>, context: ToolContext): Promise<ToolResult> {
  return onPage(context, shown);
}

export function click({ ref }: ToolInput<'browser_click'>, context: ToolContext): Promise<ToolResult> {
  return onPage(context, async (page, browser) => {
    await page.locator(`aria-ref=${ref}`).click();
    return settled(page, browser);
  });
}

export function type({ ref, text, submit }: ToolInput<'browser_type'>, context: ToolContext): Promise<ToolResult> {
  return onPage(context, async (page, browser) => {
    const field = page.locator(`aria-ref=${ref}`);
    await field.fill(text);
    if (submit === true) await field.press('Enter');
    return settled(page, browser);
  });
}

/** The picture is a file, since not every model sees pictures; one that does is shown it, smaller where it must be. */
export async function screenshot(
  { fullPage }: ToolInput<'browser_screenshot'>,
  context: ToolContext,
): Promise<ToolResult> {
  let shownPicture: Picture | undefined;
  const result = await onPage(context, async (page) => {
    const height = fullPage === true ? await page.evaluate('document.documentElement.scrollHeight') : 0;
    const isTooLarge = Number(height) * 1280 > MAX_PIXELS;
    const area = { fullPage: fullPage === true && !isTooLarge };
    const picture = await page.screenshot(area);
    const isLong = picture.readUInt32BE(20) > MAX_PICTURE_PIXELS;
    shownPicture = pictureOf(picture);
    if (shownPicture === undefined && !isLong) {
      shownPicture = pictureOf(await page.screenshot({ ...area, type: 'jpeg', quality: JPEG_QUALITY }));
    }
    const { workspace, run, call } = context;
    const file = openOutputLog(workspace, run, `${call}.png`);
    file.write(picture);
    const path = file.close();
    if (path === undefined) throw new ToolFailure('The picture could not be written; the workspace may be full.');
    return {
      path,
      bytes: picture.length,
      // In the head of every PNG.
      width: picture.readUInt32BE(16),
      height: picture.readUInt32BE(20),
      ...(isTooLarge ? { note: 'The page is too long for one picture: this is what is in view.' } : {}),
      ...(shownPicture === undefined ? { notShown: 'The picture is too large to be shown.' } : {}),
      ...(await about(page)),
    };
  });
  return withPictures(result, shownPicture === undefined ? [] : [shownPicture]);
}

/** A browser that hangs or is left waiting is ended: the next call gets a new one. */
async function onPage(context: ToolContext, work: Work): Promise<ToolResult> {
  const { browser, clock, signal } = context;
  if (browser === undefined) throw new ToolFailure(NO_BROWSER);
  const late = Promise.withResolvers<never>();
  late.promise.catch(() => undefined);
  let isLate = false;
  const giveUp = () => {
    isLate = true;
    late.reject(new ToolFailure(`The browser gave no answer within ${BROWSER_SECONDS} seconds.`));
  };
  const cancelTimer = clock.after(BROWSER_SECONDS * 1000, giveUp);
  signal.addEventListener('abort', giveUp, { once: true });
  try {
    const result = await Promise.race([browser.page().then((page) => work(page, browser)), late.promise]);
    return { isError: false, result };
  } catch (error) {
    if (error instanceof ToolFailure) throw error;
    throw new ToolFailure(explain(firstLine(error)));
  } finally {
    cancelTimer();
    signal.removeEventListener('abort', giveUp);
    if (isLate) await browser.close();
  }
}

function explain(problem: string): string {
  if (/aria-ref|Timeout \d+ms exceeded/.test(problem)) {
    return 'The page did not do this in time, or the ref is not of the latest snapshot: take a snapshot and try again.';
  }
  return `The browser could not do this: ${problem}`;
}

/** After a click a new page may load or open; what is there after a moment is shown. */
async function settled(before: Page, browser: Browser): Promise<Record<string, unknown>> {
  await before.waitForLoadState('networkidle', { timeout: SETTLE_MS }).catch(() => undefined);
  const page = await browser.page();
  await page.waitForLoadState('domcontentloaded').catch(() => undefined);
  return shown(page);
}

async function shown(page: Page): Promise<Record<string, unknown>> {
  const text = await page.ariaSnapshot({ mode: 'ai' });
  const bytes = Buffer.byteLength(text);
  const cut = bytes > MAX_SHOWN_BYTES ? { truncated: true, snapshotBytes: bytes } : {};
  return { ...(await about(page)), snapshot: cutUtf8(text, MAX_SHOWN_BYTES), ...cut };
}

async function about(page: Page): Promise<Record<string, unknown>> {
  return { url: cutUtf8(page.url(), 2048), title: cutUtf8(await page.title(), 300) };
}

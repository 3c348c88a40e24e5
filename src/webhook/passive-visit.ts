/**
 * Visits without intent (spec 4.3.6): somebody pasted or hovered over the URL and a program looked at it. They answer
 * 204 and never start a run.
 */
import type { IncomingHttpHeaders } from 'node:http';

/**
 * Headers by which a program says that nobody asked for the page yet; valid for every method. A value counts when one of
 * its words is in the list.
 */
const INTENT_HEADERS: readonly { header: string; words: readonly string[] }[] = [
  // Chromium and Safari: `prefetch`, `prefetch;prerender`, `prefetch;anonymous-client-ip`.
  { header: 'sec-purpose', words: ['prefetch', 'prerender', 'preview'] },
  // Older Chromium and Edge: `prefetch`; Safari's page previews: `preview`.
  { header: 'purpose', words: ['prefetch', 'prerender', 'preview', 'instant'] },
  // Safari (Top Sites: `preview`) and the in-app browser of Facebook (`preview`, `prefetch`).
  { header: 'x-purpose', words: ['prefetch', 'prerender', 'preview', 'instant'] },
  // Firefox: `prefetch`.
  { header: 'x-moz', words: ['prefetch', 'prerender', 'preview'] },
  // Link preview services that name their intent: a flag.
  { header: 'x-preview', words: ['1', 'true', 'yes', 'preview', 'prefetch'] },
  { header: 'x-link-preview', words: ['1', 'true', 'yes', 'preview', 'prefetch'] },
  { header: 'x-prefetch', words: ['1', 'true', 'yes', 'preview', 'prefetch'] },
];

/**
 * Programs that fetch a link because it was seen, by the exact product of their User-Agent, in lower case. They count
 * for GET only: none of them sends another method, and some vendors' webhook senders have names close to these
 * (`Slackbot-LinkExpanding` unfurls, `Slackbot 1.0` sends webhooks; `LineBotWebhook` sends webhooks).
 */
const PASSIVE_PRODUCTS: ReadonlySet<string> = new Set([
  // Link unfurlers of chats.
  'slackbot-linkexpanding', // Slack: preview of a link in a message.
  'slack-imgproxy', // Slack: images of previews.
  'discordbot', // Discord: embeds.
  'telegrambot', // Telegram: link previews.
  'whatsapp', // WhatsApp: link previews; Signal sends the same name.
  'skypeuripreview', // Skype and Microsoft Teams: link previews.
  'viber', // Viber: link previews.
  'line-poker', // LINE: link previews.
  'kakaotalk-scrap', // KakaoTalk: link previews.
  'synapse', // Matrix homeserver: link previews.
  'zulipurlpreview', // Zulip: link previews.
  // Link unfurlers of social networks.
  'facebookexternalhit', // Facebook, Instagram, Messenger; also in the User-Agent of Apple's LinkPresentation.
  'facebookcatalog', // Facebook: pages behind shared products.
  'facebot', // Facebook: prefetch of shared links; Apple's LinkPresentation names it too.
  'meta-externalfetcher', // Meta: links that a person put into a chat.
  'twitterbot', // X: cards; Apple's LinkPresentation (Messages, Notes, clipboard managers) names it too.
  'linkedinbot', // LinkedIn: link previews.
  'pinterestbot', // Pinterest: rich pins.
  'pinterest', // Pinterest: older name.
  'redditbot', // Reddit: thumbnails.
  'mastodon', // Mastodon: preview cards, one fetch by each server.
  'bluesky cardyb', // Bluesky: link cards.
  'tumblr', // Tumblr: link posts.
  'vkshare', // VK: link snippets.
  // Link unfurlers of documents and boards, and services that they buy previews from.
  'notionembedder', // Notion: bookmarks and embeds.
  'iframely', // Iframely: previews for many products.
  'embedly', // Embedly: previews for many products.
  'outbrain', // Outbrain: previews of recommended links.
  'bitlybot', // Bitly: title of a shortened link.
  'bufferbot', // Buffer: preview of a post that is being written.
  'flipboardproxy', // Flipboard: previews.
  'google-pagerenderer', // Google Chat and Gmail: link previews.
  'googleimageproxy', // Gmail: images of mails.
  'yahoomailproxy', // Yahoo Mail: images and previews of mails.
  'bingpreview', // Bing and Outlook: page previews.
  // Prefetchers.
  'chrome privacy preserving prefetch proxy', // Chrome: asks a site about prefetching.
  // Clipboard managers. Apple's URLSession names the app in front of CFNetwork.
  'paste', // Paste (macOS, iOS): preview of a copied link.
  'pastebot', // Pastebot (macOS).
  'pastenow', // PasteNow (macOS, iOS).
  'raycast', // Raycast: clipboard history with link previews.
]);

/** Whether the call is a passive visit. */
export function isPassiveVisit(method: string, headers: IncomingHttpHeaders): boolean {
  if (INTENT_HEADERS.some(({ header, words }) => hasWord(headers[header], words))) return true;
  return method === 'GET' && userAgentProducts(headers['user-agent'] ?? '').some((name) => PASSIVE_PRODUCTS.has(name));
}

function hasWord(value: string | string[] | undefined, words: readonly string[]): boolean {
  if (value === undefined) return false;
  const found = String(value)
    .toLowerCase()
    .split(/[\s,;=]+/);
  return found.some((word) => words.includes(word));
}

/**
 * The products of a User-Agent in lower case and without versions: `a/1 b (compatible; C d/2; +https://e)` has a, b,
 * compatible, `c d` and `+https:`.
 */
function userAgentProducts(userAgent: string): string[] {
  const products: string[] = [];
  for (const [, comment, token] of userAgent.toLowerCase().matchAll(/\(([^()]*)\)|([^\s;,()]+)/g)) {
    for (const item of comment?.split(';') ?? [token ?? '']) products.push((item.split('/', 1)[0] ?? '').trim());
  }
  return [userAgent.toLowerCase().trim(), ...products];
}

import { PASSIVE_PRODUCTS } from './passive-products.js';
import { isPassiveVisit } from './passive-visit.js';

const APPLE_LINK_PRESENTATION =
  'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_11_1) AppleWebKit/601.2.4 (KHTML, like Gecko) Version/9.0.1 Safari/601.2.4 facebookexternalhit/1.1 Facebot Twitterbot/1.0';

describe('a GET is a passive visit', () => {
  it.each([
    ['of Slack', 'Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)'],
    ['of Slack images', 'Slack-ImgProxy (+https://api.slack.com/robots)'],
    ['of Discord', 'Mozilla/5.0 (compatible; Discordbot/2.0; +https://discordapp.com)'],
    ['of Telegram', 'TelegramBot (like TwitterBot)'],
    ['of WhatsApp', 'WhatsApp/2.23.20.0'],
    [
      'of Microsoft Teams',
      'Mozilla/5.0 (Windows NT 6.1; WOW64) SkypeUriPreview Preview/0.5 skype-url-preview@microsoft.com',
    ],
    ['of Facebook', 'facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)'],
    ['of LINE', 'facebookexternalhit/1.1;line-poker/1.0'],
    ['of X', 'Twitterbot/1.0'],
    ['of LinkedIn', 'LinkedInBot/1.0 (compatible; Mozilla/5.0; Apache-HttpClient +http://www.linkedin.com)'],
    ['of Mastodon', 'http.rb/5.1.1 (Mastodon/4.2.1; +https://mastodon.social/)'],
    ['of Bluesky', 'Mozilla/5.0 (compatible; Bluesky Cardyb/1.1; +mailto:support@bsky.app)'],
    ['of Notion', 'NotionEmbedder'],
    ['of Iframely', 'Iframely/1.3.1 (+https://iframely.com/docs/about)'],
    ['of Messages and clipboard managers of Apple', APPLE_LINK_PRESENTATION],
    ['of a clipboard manager', 'Paste/4.1 CFNetwork/1490.0.4 Darwin/23.2.0'],
    ['of the prefetch proxy of Chrome', 'Chrome Privacy Preserving Prefetch Proxy'],
    ['of Snapchat', 'Snap URL Preview Service; bot; snapchat; https://developers.snap.com/robots'],
    ['of DingTalk', 'DingTalkBot-LinkService/1.0 (+https://open-doc.dingtalk.com/microapp/faquestions/ftpfeu)'],
    ['of Steam', 'Valve/Steam HTTP Client 1.0 (SteamChatURLLookup)'],
    ['of Discourse', 'Discourse Forum Onebox v3.4.0.beta8'],
    ['of Misskey', 'SummalyBot/5.1.0'],
    ['of Lemmy', 'Lemmy/0.19.8; +https://lemmy.example'],
    ['of Notion bookmarks', 'Notion/1.0 (https://notion.so; team@makenotion.com)'],
    ['of Buffer', 'BufferLinkPreviewBot/1.0 (+https://scraper.buffer.com/about/bots/link-preview-bot)'],
    ['of Yahoo Mail', 'Mozilla/5.0 (compatible; Yahoo Link Preview; https://help.yahoo.com/kb/mail/x.html)'],
    ['of Outlook', 'MicrosoftPreview/2.0; +https://aka.ms/MicrosoftPreview'],
    ['of images in GitHub comments', 'github-camo (c006e452)'],
  ])('%s', (_name, userAgent) => {
    expect(isPassiveVisit('GET', { 'user-agent': userAgent })).toBe(true);
    expect(isPassiveVisit('POST', { 'user-agent': userAgent })).toBe(false);
  });
});

describe('a call is meant', () => {
  it.each([
    ['without User-Agent', undefined],
    ['of curl', 'curl/8.5.0'],
    [
      'of a browser',
      'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36',
    ],
    ['of the webhook sender of Slack', 'Slackbot 1.0 (+https://api.slack.com/robots)'],
    ['of the webhook sender of LINE', 'LineBotWebhook/2.0'],
    ['of GitHub', 'GitHub-Hookshot/044aadd'],
    ['of Stripe', 'Stripe/1.0 (+https://stripe.com/docs/webhooks)'],
    ['of a slash command of Mattermost', 'Mattermost-Bot/1.1'],
    ['of a Steam client that looks nothing up', 'Valve/Steam HTTP Client 1.0'],
    ['of a product whose name begins like one of the table', 'TwitterbotFactory/1.0'],
    ['of a product whose name ends like one of the table', 'My-Twitterbot/1.0'],
    ['of a sender that writes about one of the table', 'hooks/1.0 (not a Twitterbot)'],
  ])('%s', (_name, userAgent) => {
    expect(isPassiveVisit('GET', userAgent === undefined ? {} : { 'user-agent': userAgent })).toBe(false);
  });
});

describe('a header of intent', () => {
  const headers = [
    { 'sec-purpose': 'prefetch' },
    { 'sec-purpose': 'prefetch;prerender' },
    { 'sec-purpose': 'prefetch;anonymous-client-ip' },
    { 'sec-purpose': 'prefetch;prerender;preview' },
    { purpose: 'prefetch' },
    { purpose: 'Preview' },
    { 'x-purpose': 'preview' },
    { 'x-purpose': ': preview' },
    { 'x-moz': 'prefetch' },
    { 'x-preview': 'true' },
    { 'x-link-preview': '1' },
    { 'x-prefetch': '1' },
  ];
  const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
  it.each(headers.flatMap((header) => methods.map((method) => ({ method, header }))))(
    'makes $method $header a passive visit',
    ({ method, header }) => expect(isPassiveVisit(method, header)).toBe(true),
  );

  it.each([
    { purpose: 'deploy' },
    { 'x-purpose': 'prefetching-service' },
    { 'x-preview': 'false' },
    { 'x-prefetch': '0' },
  ])('%j says nothing', (header) => expect(isPassiveVisit('GET', header)).toBe(false));
});

it('reads a User-Agent of 16 KB of open brackets without going back over it', () => {
  expect(isPassiveVisit('GET', { 'user-agent': `${'('.repeat(16_000)} Twitterbot/1.0` })).toBe(true);
});

it('has names in lower case, as they are compared', () => {
  expect([...PASSIVE_PRODUCTS].filter((name) => name !== name.toLowerCase().trim() || name === '')).toEqual([]);
});

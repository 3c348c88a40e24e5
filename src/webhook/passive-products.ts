/**
 * Programs that fetch a link because it was seen, by the exact product of their User-Agent, in lower case and without version.
 * Webhook senders with names close to these are not here: `Slackbot 1.0`, `LineBotWebhook`, `facebookplatform`. Nor are
 * programs that preview links and send meant calls under one name (Mattermost-Bot: slash commands may be GET).
 *
 * Reviewed on 2026-11-21 against what the makers publish (addresses below), the source of the open products, and the list
 * https://github.com/monperrus/crawler-user-agents (its entries tagged social-preview). docs/webhooks.md says how to
 * propose one.
 */
export const PASSIVE_PRODUCTS: ReadonlySet<string> = new Set([
  // Link unfurlers of chats.
  'slackbot-linkexpanding', // Slack: a link in a message. https://api.slack.com/robots
  'slack-imgproxy', // Slack: images of previews. https://api.slack.com/robots
  'discordbot', // Discord: embeds.
  'telegrambot', // Telegram.
  'whatsapp', // WhatsApp; Signal sends the same name.
  'skypeuripreview', // Skype and Microsoft Teams.
  'viber', // Viber.
  'line-poker', // LINE.
  'kakaotalk-scrap', // KakaoTalk.
  'dingtalkbot-linkservice', // DingTalk. https://open-doc.dingtalk.com/microapp/faquestions/ftpfeu
  'chatwork linkpreview', // Chatwork.
  'groupmebot', // GroupMe.
  'keybasebot', // Keybase. https://book.keybase.io/docs/chat/link-previews
  'steamchaturllookup', // Steam chat.
  'synapse', // Matrix homeserver. https://github.com/element-hq/synapse
  'zulipurlpreview', // Zulip. https://github.com/zulip/zulip
  'snap url preview service', // Snapchat. https://developers.snap.com/robots
  'snapurlpreview', // Snapchat, newer name.
  'google-chat-link-preview', // Google Chat.
  'googlemessages', // Google Messages.
  // Link unfurlers of social networks and forums.
  'facebookexternalhit', // Facebook, Instagram, Messenger. https://developers.facebook.com/docs/sharing/webmasters/web-crawlers
  'meta-externalhit', // The same, newer name.
  'facebookcatalog', // Facebook: pages behind shared products.
  'facebot', // Facebook: prefetch of shared links.
  'meta-externalfetcher', // Meta: links that a person put into a chat.
  'twitterbot', // X: cards. https://developer.x.com/en/docs/x-for-websites/cards
  'linkedinbot', // LinkedIn.
  'pinterestbot', // Pinterest: rich pins.
  'pinterest', // Pinterest, older name.
  'redditbot', // Reddit: thumbnails.
  'mastodon', // Mastodon: one fetch by each server. https://github.com/mastodon/mastodon
  'summalybot', // Misskey. https://github.com/misskey-dev/summaly
  'lemmy', // Lemmy. https://github.com/LemmyNet/lemmy
  'friendica', // Friendica.
  'bluesky cardyb', // Bluesky: link cards.
  'tumblr', // Tumblr: link posts.
  'vkshare', // VK. https://vk.com/dev/Share
  'vkrobot', // VK.
  'odklbot', // Odnoklassniki.
  'discourse forum onebox', // Discourse. https://github.com/discourse/discourse
  // Link unfurlers of documents, boards and planners, and services that they buy previews from.
  'notion', // Notion: bookmarks.
  'notionembedder', // Notion: embeds.
  'clickuplinkunfurler', // ClickUp.
  'evernoterichlinkbot', // Evernote.
  'mediumbot-metatagfetcher', // Medium.
  'iframely', // Iframely: previews for Atlassian and many others. https://iframely.com/docs/about
  'embedly', // Embedly: previews for many products. https://support.embed.ly
  'opengraph.io', // OpenGraph.io: previews for many products.
  'outbrain', // Outbrain: previews of recommended links.
  'bitlybot', // Bitly: title of a shortened link.
  'bufferbot', // Buffer, older name.
  'bufferlinkpreviewbot', // Buffer. https://scraper.buffer.com/about/bots/link-preview-bot
  'flipboardproxy', // Flipboard. https://about.flipboard.com/browserproxy/
  // Previews and image proxies of mail and of search.
  'google-pagerenderer', // Google: snippets of links.
  'google web preview', // Google: page previews.
  'googleimageproxy', // Gmail: images of mails.
  'github-camo', // GitHub: images in comments. https://github.com/atmos/camo
  'yahoo link preview', // Yahoo Mail. https://help.yahoo.com/kb/mail/yahoo-link-preview-SLN23615.html
  'yahoomailproxy', // Yahoo Mail. https://help.yahoo.com/kb/yahoo-mail-proxy-SLN28749.html
  'shortwave image fetcher', // Shortwave.
  'bingpreview', // Bing and Outlook. https://www.bing.com/webmasters/help/which-crawlers-does-bing-use-8c184ec0
  'microsoftpreview', // The same, newer name.
  // Prefetchers.
  'chrome privacy preserving prefetch proxy', // Chrome: asks a site about prefetching.
  'cloudflare-prefetch', // Cloudflare. https://developers.cloudflare.com/speed/optimization/content/prefetch-urls/
  // Clipboard managers. Apple's URLSession names the app in front of CFNetwork; those that use Apple's LinkPresentation name
  // facebookexternalhit, Facebot and Twitterbot.
  'paste', // Paste (macOS, iOS). https://pasteapp.io
  'pastebot', // Pastebot (macOS). https://tapbots.com/pastebot/
  'pastenow', // PasteNow (macOS, iOS). https://pastenow.app
  'raycast', // Raycast: clipboard history with link previews. https://www.raycast.com
]);

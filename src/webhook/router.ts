/** Where trigger URLs enter the process. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { handleTriggerCall } from './handler.js';
import type { WebhookDeps } from './handler.js';
import { isTriggerPath, splitUrl } from './trigger-path.js';

/** Fits `app.use` of express. */
export type WebhookRouter = (request: IncomingMessage, response: ServerResponse, next: () => void) => void;

/**
 * Answers every call below `/api/t` and passes on all others. Register it before everything else and without a path: it
 * reads the raw URL, because the framework answers malformed escapes and bodies by itself.
 */
export function createWebhookRouter(deps: WebhookDeps): WebhookRouter {
  return (request, response, next) => {
    if (!isTriggerPath(splitUrl(request.url ?? '').path)) return next();
    void handleTriggerCall(request, response, deps);
  };
}

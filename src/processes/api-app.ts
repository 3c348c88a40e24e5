/** The public side of an API pod as one express application: trigger URLs, downloads, MCP endpoint, the web application, and JSON 404 for all else. */
import express from 'express';
import type { ErrorRequestHandler, Express, Response } from 'express';
import type { Logger } from '../observability/logger.js';

export interface ApiAppParts {
  /** Reads the raw URL, so it stands first. */
  webhook: express.RequestHandler;
  /** Reads the raw URL as well. */
  downloads: express.RequestHandler;
  mcp: express.RequestHandler;
  /** The web application and what it calls. */
  web: express.RequestHandler;
  log: Logger;
}

/** Clients probe paths like `/.well-known/*` and `/register`: a JSON 404, never HTML and never a redirect. */
export function createApiApp({ webhook, downloads, mcp, web, log }: ApiAppParts): Express {
  const app = express();
  app.disable('x-powered-by');
  app.set('etag', false);
  app.use(webhook);
  app.use(downloads);
  app.use(mcp);
  app.use(web);
  app.use((_request, response) => sendNotFound(response));
  const onError: ErrorRequestHandler = (error: unknown, _request, response, _next) => {
    log.error({ err: error }, 'request failed');
    if (!response.headersSent) sendNotFound(response);
    else response.destroy();
  };
  app.use(onError);
  return app;
}

function sendNotFound(response: Response): void {
  response.writeHead(404, { 'content-type': 'application/json' }).end('{"error":"not found"}');
}

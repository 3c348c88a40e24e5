/** The web application begins here. */
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { Router } from 'wouter';
import { useHashLocation } from 'wouter/use-hash-location';
import { ApiError } from './api.js';
import { App } from './app.js';
import './style.css';
import { applyTheme } from './theme.js';

applyTheme();

const client: QueryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 1_000,
      retry: (failures, error) => failures < 2 && !(error instanceof ApiError && error.status < 500),
      // A session may end at any call.
      throwOnError: (error) => {
        if (error instanceof ApiError && error.status === 401) client.setQueryData(['session'], null);
        return false;
      },
    },
  },
});

const root = document.getElementById('root');
if (root !== null) {
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={client}>
        <Router hook={useHashLocation}>
          <App />
        </Router>
      </QueryClientProvider>
    </StrictMode>,
  );
}

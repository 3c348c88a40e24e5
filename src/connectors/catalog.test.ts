import { hostOf, isSecretName, referencesOf } from '../api/credentials.js';
import { SHIPPED_CONNECTORS } from './catalog.js';

test('a dozen and more, each with a slug of its own', () => {
  expect(SHIPPED_CONNECTORS.length).toBeGreaterThanOrEqual(12);
  expect(new Set(SHIPPED_CONNECTORS.map(({ slug }) => slug)).size).toBe(SHIPPED_CONNECTORS.length);
});

test.each(SHIPPED_CONNECTORS.map((connector) => [connector.slug, connector] as const))(
  '%s: what it asks for is what its headers carry',
  (slug, { spec }) => {
    expect(slug).toMatch(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/);
    expect(hostOf(spec.remote.url)).toContain('.');
    expect(spec.secrets).toEqual(referencesOf(spec.remote));
    expect(spec.secrets.every(isSecretName)).toBe(true);
    expect(spec.auth === 'none').toBe(spec.secrets.length === 0);
    expect(spec.homepage).toMatch(/^https:\/\//);
  },
);

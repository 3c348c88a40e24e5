// One configuration, one project per level (see README "Tests"): pick one with --selectProjects.
// Modules are ESM: .js specifiers in imports are mapped back to the .ts sources, @swc/jest only strips types.
const shared = {
  testEnvironment: 'node',
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      { jsc: { target: 'es2024', parser: { syntax: 'typescript' } }, module: { type: 'es6' } },
    ],
  },
};

const e2e = {
  ...shared,
  setupFilesAfterEnv: ['<rootDir>/test/e2e/support/close.ts'],
  globalTeardown: '<rootDir>/test/e2e/global-teardown.mjs',
};

/** @type {import('jest').Config} */
export default {
  maxWorkers: 2,
  testSequencer: '<rootDir>/test/sequencer.mjs',
  // Only a hang meets it: how fast a machine is decides no test.
  testTimeout: 180_000,
  projects: [
    { ...shared, displayName: 'unit', testMatch: ['<rootDir>/src/**/*.test.ts'] },
    { ...shared, displayName: 'component', testMatch: ['<rootDir>/test/component/**/*.test.ts'] },
    { ...shared, displayName: 'browser', testMatch: ['<rootDir>/test/browser/**/*.test.ts'] },
    { ...shared, displayName: 'repo', testMatch: ['<rootDir>/test/repo/**/*.test.ts'] },
    {
      ...shared,
      displayName: 'integration',
      testMatch: ['<rootDir>/test/integration/**/*.test.ts'],
      globalSetup: '<rootDir>/test/integration/global-setup.mjs',
      globalTeardown: '<rootDir>/test/integration/global-teardown.mjs',
    },
    {
      ...shared,
      displayName: 'clients',
      testMatch: ['<rootDir>/test/clients/**/*.test.ts'],
      globalSetup: '<rootDir>/test/integration/global-setup.mjs',
      globalTeardown: '<rootDir>/test/integration/global-teardown.mjs',
    },
    {
      ...shared,
      displayName: 'load',
      testMatch: ['<rootDir>/test/load/**/*.test.ts'],
      globalSetup: '<rootDir>/test/integration/global-setup.mjs',
      globalTeardown: '<rootDir>/test/integration/global-teardown.mjs',
    },
    { ...e2e, displayName: 'e2e', testMatch: ['<rootDir>/test/e2e/*.test.ts'] },
    { ...e2e, displayName: 'e2e-alone', testMatch: ['<rootDir>/test/e2e/alone/*.test.ts'] },
  ],
};

import { loadConfig } from '../config/env.js';
import type { ConfigError } from '../config/env.js';
import { ControllerConfig } from './config.js';

const NEEDED = {
  BOXWRIGHT_RELEASE_NAMESPACE: 'boxwright',
  BOXWRIGHT_POD_NAME: 'controller-1',
  BOXWRIGHT_RUNNER_IMAGE: 'boxwright-runner:1',
  BOXWRIGHT_TOOLS_IMAGE: 'boxwright-tools:1',
};

test('the variables of the chart are read, the others have defaults', () => {
  const config = loadConfig(ControllerConfig, {
    ...NEEDED,
    BOXWRIGHT_MAX_RUNNING: '7',
    BOXWRIGHT_CLUSTER_CIDRS: '10.0.0.0/8, fd00::/8',
    BOXWRIGHT_RUN_IMAGE_PULL_POLICY: 'Never',
  });
  expect(config).toMatchObject({
    maxRunning: 7,
    clusterCidrs: ['10.0.0.0/8', 'fd00::/8'],
    runImagePullPolicy: 'Never',
    gatewayService: 'boxwright-gateway',
    internalPort: 8081,
  });
  expect(loadConfig(ControllerConfig, NEEDED)).toMatchObject({ maxRunning: 100, clusterCidrs: [] });
});

test('every wrong variable is named at once', () => {
  const env = { BOXWRIGHT_CLUSTER_CIDRS: 'all', BOXWRIGHT_MAX_RUNNING: '0', BOXWRIGHT_RELEASE_NAMESPACE: 'boxwright' };
  let problems: readonly string[] = [];
  try {
    loadConfig(ControllerConfig, env);
  } catch (error) {
    problems = (error as ConfigError).problems;
  }
  const named = problems.map((problem) => problem.slice(0, problem.indexOf(':'))).sort();
  expect(named).toEqual([
    'BOXWRIGHT_CLUSTER_CIDRS',
    'BOXWRIGHT_MAX_RUNNING',
    'BOXWRIGHT_POD_NAME',
    'BOXWRIGHT_RUNNER_IMAGE',
    'BOXWRIGHT_TOOLS_IMAGE',
  ]);
});

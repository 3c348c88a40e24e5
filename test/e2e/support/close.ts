/** For each file of end-to-end tests: its connection to the cluster ends with it. */
import { afterAll } from '@jest/globals';
import { closeCluster } from './cluster.js';

afterAll(closeCluster);

/** The ConfigMap with what the operator says of models: gateway and api read it. */
import { z } from 'zod';

export const modelPricesConfigMap = z
  .string()
  .min(1)
  .default('boxwright-model-prices')
  .describe('ConfigMap of the installation with prices beside and instead of the built-in ones; it may be missing.');

/** Parameters of a call that only say how the model should work; some models take none of them. */
export const OPTIONAL_PARAMETERS = ['temperature', 'reasoning'] as const;
export type OptionalParameter = (typeof OPTIONAL_PARAMETERS)[number];

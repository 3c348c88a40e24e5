/** Labels, annotations and finalizers, all under boxwright.dev/. Values of labels are never agent ids. */

/** On Jobs, pods and chunks: the AgentRun's name. */
export const LABEL_RUN = 'boxwright.dev/run';
/** On AgentRuns, Jobs and pods: the Agent's object name (at most 36 characters, so a valid label value). */
export const LABEL_AGENT = 'boxwright.dev/agent';
/** On AgentRuns: the AgentEval that they are a case of, or judge for. */
export const LABEL_EVAL = 'boxwright.dev/eval';
/** On namespaces and their contents: the Box. */
export const LABEL_BOX = 'boxwright.dev/box';
/** On the Job and the pod that probe whether the network enforces the policies of a Box; they are no run. */
export const LABEL_NETWORK_PROBE = 'boxwright.dev/network-probe';
/** On workspace namespaces. */
export const LABEL_WORKSPACE = 'boxwright.dev/workspace';
/** On everything that we create in a Box namespace; the admission policies guard it. */
export const LABEL_MANAGED_BY = 'app.kubernetes.io/managed-by';
export const MANAGED_BY = 'boxwright';

/** Who asked for the latest change: prefix of an API key, or the name of a component. */
export const ANNOTATION_REQUESTED_BY = 'boxwright.dev/requested-by';
/** Creation with milliseconds (creationTimestamp has whole seconds), noted by the API pod for "newest first". */
export const ANNOTATION_CREATED_AT = 'boxwright.dev/created-at';
/** Marks an object whose source of truth is elsewhere: our tools refuse to write it. */
export const ANNOTATION_MANAGED_BY = 'boxwright.dev/managed-by';
/** On an Agent: the template and version that it was installed from, as `<templateId>@<version>`. */
export const ANNOTATION_TEMPLATE = 'boxwright.dev/template';
/** On an Agent: it belongs to an install that is not committed yet (src/api/installing.ts). */
export const ANNOTATION_INSTALLING = 'boxwright.dev/installing';
/** On the first Agent of a committed install: its template does not count it yet (src/api/install-count.ts). */
export const ANNOTATION_UNCOUNTED_INSTALL = 'boxwright.dev/uncounted-install';
/** On a namespace: an administrator lets the Box of this name adopt it. */
export const ANNOTATION_ADOPT = 'boxwright.dev/adopt';
/**
 * On an AgentRun: its UID when the controller began to start it. Another UID means a copy of a backup, without the status that
 * would say what came of the run.
 */
export const ANNOTATION_STARTED_UID = 'boxwright.dev/started-uid';
/** On the Secrets boxwright-gateway-tls and boxwright-ca: with any value the certificate in it is changed at once. */
export const ANNOTATION_ROTATE = 'boxwright.dev/rotate';
/** On a Job: the latest run of the same session, whose transcript continues in this one. */
export const ANNOTATION_PREVIOUS_RUN = 'boxwright.dev/previous-run';

/** On the Job of a network probe: digest of the policies and targets that it probes. */
export const ANNOTATION_PROBED = 'boxwright.dev/probed';
/** On a Job: what the budgets left to the run when it was admitted, as JSON. */
export const ANNOTATION_BUDGET = 'boxwright.dev/budget';

/** Holds an AgentRun until it is counted in every owner's totals. */
export const FINALIZER_ROLL_UP = 'boxwright.dev/fold';
/** Holds Agent, Box and Workspace until their children are removed and rolled up. */
export const FINALIZER_CLEANUP = 'boxwright.dev/cleanup';

/** Environment and paths inside a run pod. */
export const RUN_TOKEN_AUDIENCE = 'boxwright-run';
/** Service account of run pods in every Box namespace; it has no rights. */
export const RUNNER_SERVICE_ACCOUNT = 'boxwright-runner';
/** What API pods show the gateway: it opens what working runs do now, and nothing of a run itself. */
export const GATEWAY_TOKEN_AUDIENCE = 'boxwright-gateway';
/** Service account of the API pods, in the namespace of the installation. */
export const API_SERVICE_ACCOUNT = 'boxwright-api';
/** Service account of the gateway pods, in the namespace of the installation. */
export const GATEWAY_SERVICE_ACCOUNT = 'boxwright-gateway';

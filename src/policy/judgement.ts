import type { Risk } from '../core/policy.js';

/** What is known of a call before the approval mode is asked. */
export interface Judgement {
  readonly risk: Risk;
  readonly reasons: readonly string[];
  readonly targets: readonly string[];
  /** Asked about in every mode, `never` included: file tools on secret and protected files, and beyond the workspace of
   * a sandbox. */
  readonly guarded: boolean;
  /** The sandbox, or for file tools the workspace, holds all that it may do. */
  readonly confined: boolean;
  /** A rule of the user decides; `sandbox`: it could not be carried out in the sandbox. */
  readonly ruling: 'allow' | 'ask' | 'deny' | 'sandbox' | null;
}

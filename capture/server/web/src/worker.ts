// The one script that may be loaded beside the page's own: its service worker. The page creates the policy for it as its
// first act, since a browser creates only one policy of a name: nothing that reaches the page later can create it.

type Policy = { createScriptURL(url: string): string };
type Factory = { createPolicy(name: string, rules: Policy): Policy };

const path = "/sw.js";

const policy = (globalThis as { trustedTypes?: Factory }).trustedTypes?.createPolicy("capture", {
  createScriptURL(url) {
    if (url !== path) throw new TypeError("only the page's own worker is permitted");
    return url;
  },
});

/** The address of the worker, in the type that the browser accepts. */
export function workerUrl(): string {
  return policy === undefined ? path : policy.createScriptURL(path);
}

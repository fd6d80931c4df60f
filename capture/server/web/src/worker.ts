// The only script that may be loaded besides the page's own: its service worker. The page creates the policy for it
// first of all: a browser creates only one policy per name, so code that reaches the page later cannot create it.

type Policy = { createScriptURL(url: string): string };
type Factory = { createPolicy(name: string, rules: Policy): Policy };

const path = "/sw.js";

const policy = (globalThis as { trustedTypes?: Factory }).trustedTypes?.createPolicy("capture", {
  createScriptURL(url) {
    if (url !== path) throw new TypeError("only the page's own worker is permitted");
    return url;
  },
});

/** The address of the worker, in the type that browsers require. */
export function workerUrl(): string {
  return policy === undefined ? path : policy.createScriptURL(path);
}

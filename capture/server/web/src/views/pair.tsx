// Signing in with a one-time code, from the link that `capture web` opened or typed by hand. The code is removed from
// the address before anything else happens.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ApiFailure, call, paired, words } from "../api/client";
import { identify, mayControl } from "../me";
import { Command } from "../parts/copy";
import { Notices } from "../parts/feedback";
import { Ticked } from "../parts/text";
import { address, go, route } from "../router";

/** A name for this browser that its owner will recognize in the list of devices. */
export function deviceName(agent: string): string {
  const systems: [RegExp, string][] = [
    [/iPhone/, "iPhone"],
    [/iPad/, "iPad"],
    [/Android/, "Android"],
    [/Windows/, "Windows"],
    [/CrOS/, "ChromeOS"],
    [/Mac OS X|Macintosh/, "Mac"],
    [/Linux/, "Linux"],
  ];
  const browsers: [RegExp, string][] = [
    [/Edg\//, "Edge"],
    [/OPR\//, "Opera"],
    [/Firefox\/|FxiOS/, "Firefox"],
    [/Chrome\/|CriOS/, "Chrome"],
    [/Safari\//, "Safari"],
  ];
  const of = (names: [RegExp, string][], other: string): string => names.find(([pattern]) => pattern.test(agent))?.[1] ?? other;
  return `${of(browsers, "Browser")} on ${of(systems, "this device")}`;
}

// Read once, when the page loads; after that, nothing else in the page contains the code.
let code = route.peek().name === "pair" && typeof location !== "undefined" ? location.hash.slice(1) : "";
if (code !== "") history.replaceState(null, "", "/pair");

/** The sign-in page. */
export function PairPage() {
  const typed = useSignal("");
  const name = useSignal(deviceName(navigator.userAgent));
  const busy = useSignal(code !== "");
  const failed = useSignal<unknown>(null);
  const pair = async (value: string): Promise<void> => {
    busy.value = true;
    failed.value = null;
    try {
      await call("POST /api/v1/pair", { body: { code: value, name: name.value.trim() || "Browser" } });
      paired.value = null;
      await identify();
      go(route.value.name === "pair" ? "/" : address.value, true);
    } catch (cause) {
      failed.value = cause;
      busy.value = false;
    }
  };
  // Every pairing creates a device, so a browser that already has `control` keeps its device.
  const redeem = async (value: string): Promise<void> => {
    await identify();
    if (mayControl.value) go("/", true);
    else await pair(value);
  };
  useEffect(() => {
    if (code === "") return;
    const value = code;
    code = "";
    void redeem(value);
  }, []);
  return (
    <main class="pair" id="main">
      <svg class="pair-mark" width="56" height="56" viewBox="0 0 64 64" aria-hidden="true" focusable="false">
        <path d="M20 10H10v10M44 10h10v10M20 54H10V44M44 54h10V44" class="brand-frame" />
        <circle cx="32" cy="32" r="10" class="brand-dot" />
      </svg>
      <h1 tabIndex={-1}>Pair this browser</h1>
      {busy.value ? (
        <p role="status">Pairing…</p>
      ) : (
        <>
          {failed.value !== null && (
            <p class="error-text" role="alert">
              <Ticked text={why(failed.value)} />
            </p>
          )}
          <p>Run one of these in a terminal on the machine of the server. The code works once, for 60 seconds.</p>
          <div class="stack">
            <Command text="capture web" about="Open this page on the same machine" />
            <Command text="capture web pair --qr --scope control" about="Pair a phone, to see sessions and decide" />
            <Command text="capture web pair --qr --scope read" about="Pair a phone, to see sessions only" />
          </div>
          <form
            class="stack"
            onSubmit={(event) => {
              event.preventDefault();
              void pair(typed.value.trim());
            }}
          >
            <label class="field">
              <span>Code</span>
              <input
                class="code-input"
                value={typed.value}
                onInput={(event) => (typed.value = event.currentTarget.value)}
                autocomplete="one-time-code"
                autocapitalize="characters"
                spellcheck={false}
              />
            </label>
            <label class="field">
              <span>Name of this device</span>
              <input value={name.value} maxLength={60} onInput={(event) => (name.value = event.currentTarget.value)} autocomplete="off" />
            </label>
            <button type="submit" class="button primary" disabled={typed.value.trim() === ""}>
              Pair
            </button>
          </form>
        </>
      )}
      <Notices />
    </main>
  );
}

function why(cause: unknown): string {
  if (cause instanceof ApiFailure && cause.code === "wrong_code") return "The code is wrong. Compare it with the one that `capture web pair` shows.";
  if (cause instanceof ApiFailure && cause.code === "code_expired") return "The code has expired or was used. Make a new one.";
  return words(cause);
}

// Paired devices, notifications, and the theme.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { call, words } from "../api/client";
import type { Device, Scope } from "../api/routes";
import { elevated, mayControl, me, signOut } from "../me";
import { Command } from "../parts/copy";
import { SingleKeys } from "../parts/dialogs";
import { attempt, Failed, Loading, notify } from "../parts/feedback";
import { Icon } from "../parts/icons";
import { useLoad } from "../parts/load";
import { Since } from "../parts/sessions";
import { Shown } from "../parts/text";
import { impossible, offered, subscribe, subscription, unsubscribe } from "../push";
import { clock, moment } from "../text/format";
import { choose, type Theme, theme } from "../theme";

const SCOPES: Record<Scope, string> = {
  read: "sees sessions",
  control: "sees sessions, decides and types",
};

// A link that elevates a device has its code in the fragment, which is removed from the address immediately.
let code = typeof location !== "undefined" && location.pathname === "/devices" ? location.hash.slice(1) : "";
if (code !== "") history.replaceState(null, "", "/devices");

/** The page. */
export function DevicesPage() {
  useEffect(() => {
    if (code === "") return;
    const value = code;
    code = "";
    void attempt(async () => {
      const { elevated_until } = await call("POST /api/v1/step-up", { body: { code: value } });
      if (me.value !== null) me.value = { ...me.value, elevated_until };
      notify(`This device may change rules until ${clock(elevated_until)}`);
    });
  }, []);
  const { state, again } = useLoad(async (abort) => {
    const [{ devices }, isOffered] = await Promise.all([call("GET /api/v1/devices", { signal: abort }), offered().catch(() => null)]);
    return { devices, isOffered };
  }, []);
  const { value, cause } = state.value;
  // Nothing is shown below what is not read yet, so that nothing moves.
  if (value === null && cause === null) {
    return (
      <div class="column devices">
        <h1 tabIndex={-1}>Devices</h1>
        <Loading lines={8} />
      </div>
    );
  }
  return (
    <div class="column devices">
      <h1 tabIndex={-1}>Devices</h1>
      {value === null ? <Failed cause={cause} retry={again} /> : <Devices devices={value.devices} again={again} />}
      <Pairing />
      {value !== null && <Notices isOffered={value.isOffered} />}
      <Appearance />
      <Keyboard />
      <p class="muted small">
        capture {me.value?.version}
        {me.value !== null && `, the server has run since ${moment(me.value.started_at)}`}
        {" · "}
        <a href="/assets/licenses.txt" target="_blank" rel="noopener">
          Licenses
        </a>
      </p>
    </div>
  );
}

function Devices({ devices, again }: { devices: Device[]; again: () => void }) {
  const asking = useSignal<string | null>(null);
  const revoke = (device: Device): void => {
    void attempt(async () => {
      if (isThis(device)) await signOut();
      else {
        await call("DELETE /api/v1/devices/{id}", { path: { id: device.id } });
        notify(`${device.name} has no access any more`);
        asking.value = null;
        again();
      }
    });
  };
  return (
    <ul class="panel device-list">
      {devices.map((device) => (
        <li key={device.id}>
          <Icon name="devices" size={20} />
          <div class="device-words">
            <strong>
              <Shown text={device.name} strictness="exact" />
            </strong>{" "}
            {isThis(device) && <span class="chip">this device</span>}
            {device.tunnel === true && <span class="chip">over a proxy</span>}
            {isThis(device) && elevated.value && <span class="chip chip-need">may change rules</span>}
            <p class="muted small">
              <span class="mono">{device.id}</span> · {SCOPES[device.scope]} · paired {moment(device.paired_at)} · last used{" "}
              <Since time={device.last_used_at} /> ago
            </p>
          </div>
          {(mayControl.value || isThis(device)) &&
            (asking.value === device.id ? (
              <div class="row">
                <button type="button" class="button small" onClick={() => (asking.value = null)}>
                  Keep
                </button>
                <button type="button" class="button small danger" onClick={() => revoke(device)}>
                  {isThis(device) ? "Sign out now" : "Revoke now"}
                </button>
              </div>
            ) : (
              <button type="button" class="button small" onClick={() => (asking.value = device.id)}>
                {isThis(device) ? "Sign out" : "Revoke"}
              </button>
            ))}
        </li>
      ))}
    </ul>
  );
}

const isThis = (device: Device): boolean => device.current === true || device.id === me.value?.device.id;

function Pairing() {
  return (
    <section class="panel settings" aria-labelledby="pairing">
      <h2 id="pairing">Pair another device</h2>
      <p class="muted">Run one of these on the machine of the server, and scan the code. It works once, for 60 seconds.</p>
      <Command text="capture web pair --qr --scope control" about="To see sessions, decide and type" />
      <Command text="capture web pair --qr --scope read" about="To see sessions only" />
    </section>
  );
}

/** `isOffered`: whether the server sends notices; `null` if that could not be read. */
function Notices({ isOffered }: { isOffered: boolean | null }) {
  const state = useSignal<"unknown" | "on" | "off" | "not offered">(isOffered === false ? "not offered" : "unknown");
  const failed = useSignal<unknown>(null);
  const busy = useSignal(false);
  const why = impossible();
  useEffect(() => {
    const look = async (): Promise<void> => {
      if (!(isOffered ?? (await offered()))) state.value = "not offered";
      else state.value = (await subscription()) === null ? "off" : "on";
    };
    look().catch((cause: unknown) => (failed.value = cause));
  }, []);
  const change = async (): Promise<void> => {
    busy.value = true;
    failed.value = null;
    try {
      if (state.value === "on") await unsubscribe();
      else await subscribe();
      state.value = state.value === "on" ? "off" : "on";
    } catch (cause) {
      failed.value = cause;
    } finally {
      busy.value = false;
    }
  };
  return (
    <section class="panel settings" aria-labelledby="notices">
      <h2 id="notices">Notices on this device</h2>
      {state.value === "not offered" ? (
        <p>This server does not send notices to browsers. Use one of the channels below; a notice links to its request.</p>
      ) : (
        <p class="muted">
          The maker of your browser carries them, encrypted. They name the agent, the directory and the kind of request; never the command. A notice opens the
          request it is about.
        </p>
      )}
      {state.value === "not offered" ? null : why !== null ? (
        <p>{why}</p>
      ) : (
        <div class="row">
          <button type="button" class="button" disabled={busy.value || state.value === "unknown" || !mayControl.value} onClick={() => void change()}>
            <Icon name="bell" />
            {state.value === "on" ? "Turn off" : "Turn on"}
          </button>
          {!mayControl.value && <span class="muted small">This device may only look.</span>}
        </div>
      )}
      {failed.value !== null && (
        <p class="error-text" role="alert">
          {words(failed.value)}
        </p>
      )}
      <p class="muted small">Channels such as ntfy, a webhook or a chat are set up in the configuration. List and test them:</p>
      <Command text="capture notify" />
    </section>
  );
}

function Keyboard() {
  return (
    <section class="panel settings" aria-labelledby="keyboard">
      <h2 id="keyboard">Keyboard</h2>
      <SingleKeys />
    </section>
  );
}

function Appearance() {
  const themes: [Theme, string][] = [
    ["system", "As the system"],
    ["light", "Light"],
    ["dark", "Dark"],
  ];
  return (
    <section class="panel settings" aria-labelledby="appearance">
      <h2 id="appearance">Appearance</h2>
      <div class="segmented" role="group" aria-labelledby="appearance">
        {themes.map(([name, word]) => (
          <button key={name} type="button" aria-pressed={theme.value === name} onClick={() => choose(name)}>
            {word}
          </button>
        ))}
      </div>
    </section>
  );
}

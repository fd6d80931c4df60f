// The frame around every page: navigation, connection state, keys, and the page itself.

import { computed, useSignalEffect } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { paired } from "./api/client";
import { listenToKeys } from "./keys";
import { approvals, needing, outdated, reconnect, row } from "./live/store";
import { behind, connection } from "./live/stream";
import { identify, me, meFailed } from "./me";
import { Dialogs, open } from "./parts/dialogs";
import { Empty, Failed, Loading, Notices } from "./parts/feedback";
import { Icon, type IconName } from "./parts/icons";
import { type Page, route } from "./router";
import { ago, counted } from "./text/format";
import { titleOf } from "./text/title";
import { visible } from "./text/visible";
import { ApprovalsPage } from "./views/approvals";
import { DevicesPage } from "./views/devices";
import { Home } from "./views/home";
import { OverviewPage } from "./views/overview";
import { PairPage } from "./views/pair";
import { RecordingPage } from "./views/recording";
import { SessionPage } from "./views/session";
import { TerminalPage } from "./views/terminal";

const pending = computed(() => approvals.value.size);

/** The whole page. */
export function App() {
  useEffect(listenToKeys, []);
  useSignalEffect(() => {
    const waiting = needing.value.length;
    const title = titled(route.value);
    document.title = `${waiting > 0 ? `(${waiting}) ` : ""}${title === null ? "" : `${title} · `}capture`;
  });
  if (route.value.name === "pair" || paired.value === false) return <PairPage />;
  return (
    <div class={`shell page-${route.value.name}`}>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <TopBar />
      <ConnectionBanner />
      <main id="main" tabIndex={-1}>
        {meFailed.value !== null && me.value === null ? (
          <Failed cause={meFailed.value} retry={() => void identify()} />
        ) : me.value === null ? (
          <div class="column">
            <Loading lines={6} />
          </div>
        ) : (
          <Shown page={route.value} />
        )}
      </main>
      <BottomBar />
      <Dialogs />
      <Notices />
    </div>
  );
}

/** The title of a page in the browser's tab; `null` for the first page, which uses the program's name. */
function titled(page: Page): string | null {
  if (page.name !== "session") return PLACES.find(({ name }) => name === page.name && name !== "home")?.label ?? TITLES[page.name] ?? null;
  const session = row(page.id)?.session.value;
  return session === undefined ? "Session" : visible(titleOf(session));
}

const TITLES: Partial<Record<Page["name"], string>> = { pair: "Pair this browser", terminal: "Terminal", recording: "Recording", missing: "Page not found" };

function Shown({ page }: { page: Page }) {
  switch (page.name) {
    case "home":
      return <Home />;
    case "approvals":
      return <ApprovalsPage focus={page.id} />;
    case "session":
      return <SessionPage key={page.id} id={page.id} />;
    case "terminal":
      return <TerminalPage key={page.id} id={page.id} />;
    case "recording":
      return <RecordingPage key={page.id} id={page.id} />;
    case "overview":
      return <OverviewPage />;
    case "devices":
      return <DevicesPage />;
    case "pair":
    case "missing":
      return (
        <div class="column">
          <h1 class="visually-hidden" tabIndex={-1}>
            Page not found
          </h1>
          <Empty icon="search" title="Page not found">
            <p>The address leads nowhere. Compare it with where you have it from.</p>
            <p>
              <a class="button" href="/">
                Show the sessions
              </a>
            </p>
          </Empty>
        </div>
      );
  }
}

const PLACES: { href: string; name: Page["name"]; label: string; icon: IconName }[] = [
  { href: "/", name: "home", label: "Sessions", icon: "sessions" },
  { href: "/approvals", name: "approvals", label: "Approvals", icon: "approvals" },
  { href: "/overview", name: "overview", label: "Overview", icon: "overview" },
  { href: "/devices", name: "devices", label: "Devices", icon: "devices" },
];

function Links({ label }: { label: string }) {
  const here = route.value.name;
  return (
    <nav aria-label={label}>
      {PLACES.map(({ href, name, label, icon }) => {
        const current = here === name || (name === "home" && (here === "session" || here === "terminal" || here === "recording"));
        return (
          <a key={name} href={href} class="place" aria-current={current ? "page" : undefined}>
            <Icon name={icon} size={18} />
            <span>{label}</span>
            {name === "approvals" && pending.value > 0 && (
              <span class="badge" aria-label={counted(pending.value, "request pending", "requests pending")}>
                {pending.value}
              </span>
            )}
          </a>
        );
      })}
    </nav>
  );
}

function TopBar() {
  return (
    <header class="top-bar">
      <a href="/" class="brand" aria-label="capture, all sessions">
        <svg width="22" height="22" viewBox="0 0 64 64" aria-hidden="true" focusable="false">
          <path d="M20 10H10v10M44 10h10v10M20 54H10V44M44 54h10V44" class="brand-frame" />
          <circle cx="32" cy="32" r="10" class="brand-dot" />
        </svg>
        <span>capture</span>
      </a>
      <Links label="Pages" />
      <div class="top-right">
        <button type="button" class="search-button" onClick={() => open("palette")} aria-keyshortcuts="Control+K">
          <Icon name="search" />
          <span class="search-words">Search or jump to…</span>
          <kbd aria-hidden="true">Ctrl K</kbd>
        </button>
        <ConnectionState />
      </div>
    </header>
  );
}

function BottomBar() {
  return (
    <div class="bottom-bar">
      <Links label="Pages, below" />
    </div>
  );
}

const STATES = { connecting: "Connecting", live: "Live", stale: "Not current", offline: "Offline" } as const;

function ConnectionState() {
  const state = connection.value;
  const late = state === "live" && behind.value > 0;
  return (
    <span class={`connection connection-${late ? "stale" : state}`} role="status">
      <span class="connection-dot" aria-hidden="true" />
      <span>{late ? "Behind" : STATES[state]}</span>
      {/* A screen reader hears the state once, and not each second. */}
      {late && <span aria-hidden="true">by {behind.value} s</span>}
    </span>
  );
}

/** Warns that the displayed data may be old. */
function ConnectionBanner() {
  if (outdated.value === null) return null;
  return (
    <div class="banner" role="alert">
      <Icon name="warning" />
      <span>Not connected. What is shown is {ago(outdated.value)} old and may have changed; decisions are not possible until the connection is back.</span>
      <button type="button" class="button small" onClick={reconnect}>
        Connect now
      </button>
    </div>
  );
}

// Shows push notifications, and opens their subject. It stores nothing and answers no request.

type Data = { title?: string; body?: string; path?: string; tag?: string };
type Push = Event & { data: { json(): unknown } | null; waitUntil(work: Promise<unknown>): void };
type Click = Event & { notification: Notification; waitUntil(work: Promise<unknown>): void };
type Page = { url: string; focus(): Promise<unknown>; navigate(url: string): Promise<unknown> };
type Worker = {
  addEventListener(kind: string, listener: (event: never) => void): void;
  skipWaiting(): Promise<void>;
  registration: { showNotification(title: string, options: object): Promise<void> };
  clients: { claim(): Promise<void>; matchAll(options: object): Promise<Page[]>; openWindow(url: string): Promise<unknown> };
  location: { origin: string };
};
const worker = self as unknown as Worker;

worker.addEventListener("install", () => void worker.skipWaiting());
worker.addEventListener("activate", (event: Push) => event.waitUntil(worker.clients.claim()));

worker.addEventListener("push", (event: Push) => {
  let data: Data = {};
  try {
    data = (event.data?.json() ?? {}) as Data;
  } catch {
    // Show even an unreadable push: browsers withdraw a subscription whose pushes are not shown.
  }
  const options = { body: data.body ?? "", tag: data.tag ?? "capture", icon: "/assets/icon-192.png", data: { path: pathOf(data.path) } };
  event.waitUntil(worker.registration.showNotification(data.title ?? "A session needs you", options));
});

worker.addEventListener("notificationclick", (event: Click) => {
  event.notification.close();
  const url = worker.location.origin + pathOf((event.notification.data as { path?: string } | null)?.path);
  event.waitUntil(
    worker.clients.matchAll({ type: "window", includeUncontrolled: true }).then(async (pages) => {
      const page = pages[0];
      if (page === undefined) return worker.clients.openWindow(url);
      await page.focus();
      return page.navigate(url);
    }),
  );
});

/** A path of this page; anything else becomes the start page. */
function pathOf(path: string | undefined): string {
  return path !== undefined && /^\/(?:$|approvals(?:[/#]|$)|s\/)[\w/#-]*$/.test(path) ? path : "/";
}

export {};

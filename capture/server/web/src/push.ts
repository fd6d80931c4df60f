// Browser notifications: enabled by a button, stored by the server as a subscription.

import { ApiFailure, call } from "./api/client";
import { workerUrl } from "./worker";

/** Why notifications are impossible here; `null` if they are possible. */
export function impossible(): string | null {
  if (!isSecureContext) return "Notices need HTTPS, or the address 127.0.0.1. See the documentation for how to reach the page over HTTPS.";
  if (!("serviceWorker" in navigator) || !("PushManager" in globalThis)) {
    return "This browser cannot receive notices from a page. On an iPhone or iPad, add the page to the home screen first and open it there.";
  }
  if (Notification.permission === "denied") return "Notices of this page are blocked in the settings of the browser.";
  return null;
}

/** Whether the server sends notifications to browsers. */
export async function offered(): Promise<boolean> {
  try {
    await call("GET /api/v1/push");
    return true;
  } catch (cause) {
    if (cause instanceof ApiFailure && cause.status === 404) return false;
    throw cause;
  }
}

/** The subscription of this browser, if it has one. */
export async function subscription(): Promise<PushSubscription | null> {
  if (impossible() !== null) return null;
  const registration = await navigator.serviceWorker.getRegistration("/");
  return (await registration?.pushManager.getSubscription()) ?? null;
}

/** Subscribes this browser after asking the user for permission. */
export async function subscribe(): Promise<void> {
  const { public_key } = await call("GET /api/v1/push");
  if ((await Notification.requestPermission()) !== "granted") throw new Error("The browser did not permit notices.");
  const registration = await navigator.serviceWorker.register(workerUrl(), { scope: "/" });
  await navigator.serviceWorker.ready;
  const made = await registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: bytes(public_key) });
  const { endpoint, keys } = made.toJSON();
  if (endpoint === undefined || keys === undefined) throw new Error("The browser made no usable subscription.");
  try {
    await call("POST /api/v1/push/subscriptions", { body: { endpoint, keys: { p256dh: keys["p256dh"] ?? "", auth: keys["auth"] ?? "" } } });
  } catch (cause) {
    await made.unsubscribe();
    throw cause;
  }
}

/** Ends the subscription, here and at the server. */
export async function unsubscribe(): Promise<void> {
  const made = await subscription();
  if (made === null) return;
  await call("DELETE /api/v1/push/subscriptions", { body: { endpoint: made.endpoint } });
  await made.unsubscribe();
}

/** The bytes of a base64url key. */
export function bytes(key: string): Uint8Array<ArrayBuffer> {
  const text = atob(key.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}
